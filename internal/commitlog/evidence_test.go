package commitlog

import (
	"slices"
	"testing"
)

func TestProvenEnd(t *testing.T) {
	const (
		clean, unclean    = true, false
		certain, doubtful = true, false
		nothing           = -1
	)
	type claims map[witness]int64
	f := func(name string, clean bool, found int64, certain bool, said claims, want int64, refused ...witness) {
		t.Helper()
		e := evidence{found: found, certain: certain, clean: clean}
		for w, claim := range said {
			e.claims[w] = claim
		}
		v := provenEnd(e)
		if v.end != want || !slices.Equal(v.refused, refused) {
			t.Errorf("%s: got end %d (%s), refused %v, want %d, %v", name, v.end, v.proof, v.refused, want, refused)
		}
	}
	agreed := func(end int64) claims {
		return claims{byRecoveryPoint: end, byHighWatermark: end, bySnapshot: end, byEpoch: end / 2}
	}
	with := func(said claims, w witness, claim int64) claims {
		said[w] = claim
		return said
	}

	f("new", clean, nothing, doubtful, claims{}, 0)
	f("all agree", clean, 150, certain, agreed(150), 150)
	f("killed, more in the file than anybody knows", unclean, 180, certain, agreed(150), 180)
	f("power cut, less in the file than consumers saw", unclean, 142, certain, claims{byRecoveryPoint: 100, bySnapshot: 100, byHighWatermark: 150}, 150)
	f("torn tail above all proofs", unclean, 142, doubtful, claims{byRecoveryPoint: 100, byHighWatermark: 142}, 142)
	f("damaged tail", clean, 142, doubtful, agreed(150), 150)
	f("damaged tail, killed", unclean, 142, doubtful, agreed(150), 150)
	f("cut between two batches", clean, 142, certain, agreed(150), 150)
	f("cut between two batches, killed", unclean, 142, certain, agreed(150), 150)
	f("cut, and the high watermark behind", clean, 142, certain, claims{byRecoveryPoint: 150, bySnapshot: 150, byHighWatermark: 120}, 150)
	f("cut to nothing", clean, 0, doubtful, agreed(150), 150)
	f("no segment at all", clean, nothing, doubtful, agreed(400), 400)
	f("no segment, and nobody else", unclean, nothing, doubtful, claims{byHighWatermark: 5e9}, 5e9)
	f("KAFKA-8306: nothing but the log start", clean, nothing, doubtful, claims{byLogStart: 500}, 500)
	f("all records deleted", clean, 500, certain, with(agreed(500), byLogStart, 500), 500)
	f("all records deleted, and lost in a crash", unclean, 80, certain, claims{byRecoveryPoint: 60, byHighWatermark: 75, byLogStart: 90}, 90)
	f("an epoch began, and its first batch is lost", unclean, 80, certain, claims{byRecoveryPoint: 60, byEpoch: 90}, 90)
	f("rolled, and the batches before are lost", unclean, 80, certain, claims{byRecoveryPoint: 60, bySegment: 90, bySnapshot: 90}, 90)
	f("known from an earlier start", unclean, 80, certain, claims{byRecoveryPoint: 80, byHighWatermark: 80, byLoss: 90}, 90)
	f("torn, and nobody else", clean, 142, doubtful, claims{byIndex: 147}, 147)
	f("torn, and others know more", clean, 142, doubtful, with(agreed(150), byIndex, 147), 150)
	f("torn, and others know less", clean, 142, doubtful, claims{byRecoveryPoint: 100, byHighWatermark: 145, byIndex: 147}, 147)

	// One witness lies.
	for w := range witnesses {
		if w == bySegment || w == byLoss {
			continue
		}
		f("lie after a clean stop", clean, 150, certain, with(agreed(150), w, 950), 150, w)
		f("huge lie after a clean stop", clean, 150, certain, with(agreed(150), w, 1<<60), 150, w)
		f("huge lie", unclean, 150, certain, with(agreed(150), w, 1<<60), 150, w)
		f("huge lie beside damage", unclean, 142, doubtful, with(agreed(150), w, 1<<60), 150, w)
	}
	f("lie beside a missing file", clean, nothing, doubtful, with(agreed(150), byHighWatermark, 950), 150, byHighWatermark)
	f("recovery point beyond the end", unclean, 150, certain, with(agreed(150), byRecoveryPoint, 1150), 150, byRecoveryPoint)
	for _, w := range []witness{byRecoveryPoint, byHighWatermark, bySnapshot} {
		f("index of another log", clean, 150, doubtful, claims{w: 150, byIndex: 210}, 150, byIndex)
	}
	f("index of another log, far", clean, 150, doubtful, claims{byIndex: 1 << 40}, 150, byIndex)
	f("file without batches behind the end", clean, 150, certain, with(agreed(150), bySegment, 500), 150, bySegment)
	f("recovery point only, too low", clean, 150, certain, claims{byRecoveryPoint: 50}, 150)
	f("stray snapshot", unclean, 150, certain, claims{byRecoveryPoint: 100, byHighWatermark: 150, bySnapshot: 200}, 150, bySnapshot)
	f("stray snapshot behind what was flushed", unclean, 150, certain, claims{byRecoveryPoint: 150, bySnapshot: 200}, 150, bySnapshot)
	f("cut behind a batch, and the last stop's snapshot is left", unclean, 150, certain, claims{byRecoveryPoint: 100, byHighWatermark: 145, bySnapshot: 200}, 200)
	f("the same, and no checkpoint", unclean, 150, certain, claims{bySnapshot: 200}, 200)
	f("stray file", unclean, 150, certain, claims{byRecoveryPoint: 100, byHighWatermark: 145, bySegment: 200}, 150, bySegment)
	f("stray snapshot after a clean stop", clean, 150, certain, claims{byRecoveryPoint: 100, bySnapshot: 200}, 150, bySnapshot)
	f("cut behind a batch after a clean stop, and the snapshot is all that is left", clean, 150, certain, claims{bySnapshot: 200}, 200)
	f("snapshot behind a damaged tail", unclean, 142, doubtful, claims{byRecoveryPoint: 100, bySnapshot: 150}, 150)
	f("snapshot of another log", unclean, 150, certain, claims{byRecoveryPoint: 100, bySnapshot: 1 << 40}, 150, bySnapshot)
	f("near, and nothing speaks against it", unclean, 150, certain, claims{byRecoveryPoint: 150, byHighWatermark: 950, bySnapshot: 150}, 950)
	f("two lies", unclean, 150, certain, claims{byHighWatermark: 1 << 60, bySnapshot: 1 << 50}, 150, byHighWatermark, bySnapshot)
	f("far, and two agree", unclean, 150, certain, claims{byRecoveryPoint: 7e9, byHighWatermark: 7e9 + 5, bySnapshot: 1 << 50}, 7e9+5, bySnapshot)
}
