package commitlog

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A witness is something besides the batches that says how far a log had come.
type witness int

const (
	byRecoveryPoint witness = iota // all below was on disk
	byHighWatermark                // consumers may have seen all below
	byLogStart                     // all below was deleted
	bySnapshot                     // of producers, the newest: taken at a roll or a stop
	byEpoch                        // where the last leader epoch begins
	bySegment                      // a file of a segment that has no batch
	byLoss                         // what an earlier start put in quarantine
	byIndex                        // an index of the last segment leads behind the last batch
	witnesses
)

var witnessNames = [witnesses]string{
	byRecoveryPoint: "recovery point", byHighWatermark: "high watermark", byLogStart: "log start",
	bySnapshot: "producer snapshot", byEpoch: "leader epoch", bySegment: "segment", byLoss: "known loss", byIndex: "index",
}

// Evidence is all that is known of where a log ended.
type evidence struct {
	found   int64 // behind the last good batch, or -1: there is no file that could have one
	certain bool  // found is behind a batch, and behind that are no bytes that may have been one
	clean   bool  // the log was closed, so that recovery point and newest snapshot are its end
	claims  [witnesses]int64
}

// A verdict is what evidence comes to.
type verdict struct {
	end     int64
	proof   string // the claims above what was found that were believed
	refused []witness
}

// provenEnd returns where a log has to go on, so that no offset is used twice: behind its last
// batch, and behind all that the witnesses say was there (doc/decisions/0007). A claim that two of
// them make, about, is true. What one alone claims is true unless it is absurd: more than a segment can
// have above everything else, or contradicted. After a clean stop two of the last batch, the
// recovery point and the newest snapshot that agree are where the log was closed. A recovery point
// comes after a sync of all below, so that it is wrong when the file ends well where the high
// watermark or a snapshot is. A roll leaves a segment and a snapshot: a segment alone behind a file that
// ends well is a stray one. A stop leaves a snapshot alone; that is a stray one when the high watermark
// or the recovery point is where the file ends well, or when a clean stop has left another recovery point. An
// index is another log's when the recovery point, the newest snapshot or the high watermark is where the
// batches end.
func provenEnd(e evidence) verdict {
	rest := max(e.found, e.agreed(), 0)
	v := verdict{end: rest}
	for w, claim := range e.claims {
		if claim > v.end && e.believes(witness(w), rest) {
			v.end = claim
		}
	}
	var proof []string
	for w, claim := range e.claims {
		switch {
		case claim > v.end:
			v.refused = append(v.refused, witness(w))
		case claim > e.found && claim > 0:
			proof = append(proof, fmt.Sprintf("%s %d", witnessNames[w], claim))
		}
	}
	v.proof = strings.Join(proof, ", ")
	return v
}

// agreed returns the most that two claim who agree: whose claims could be of one segment, or of
// that of the last batch.
func (e *evidence) agreed() int64 {
	claims := e.claims
	slices.SortFunc(claims[:], func(a, b int64) int { return cmp.Compare(b, a) })
	for i, claim := range claims[1:] {
		if claims[i]-claim <= math.MaxInt32 || e.found >= 0 && claim-e.found <= math.MaxInt32 {
			return claim
		}
	}
	return 0
}

// believes reports whether the claim of one witness alone is true; rest is the most of all else.
func (e *evidence) believes(w witness, rest int64) bool {
	switch {
	case e.found < 0 && rest == 0:
		return true // there is nothing to compare it with
	case e.claims[w]-rest > math.MaxInt32:
		return false
	case e.clean && e.closed(w):
		return false
	case w == byRecoveryPoint && (e.certain || e.found == 0) && (e.claims[byHighWatermark] == e.found || e.claims[bySnapshot] == e.found):
		return false
	case w == bySegment && e.certain:
		return false
	case w == byIndex && e.found > 0 && slices.Contains([]int64{e.claims[byRecoveryPoint], e.claims[bySnapshot], e.claims[byHighWatermark]}, e.found):
		return false
	case w == bySnapshot && e.certain && e.found > 0 && (e.clean && e.claims[byRecoveryPoint] > 0 || e.claims[byHighWatermark] == e.found || e.claims[byRecoveryPoint] == e.found):
		return false
	}
	return true
}

// closed reports whether two others than w agree on where the log was closed.
func (e *evidence) closed(w witness) bool {
	point, snapshot := e.claims[byRecoveryPoint], e.claims[bySnapshot]
	atPoint := e.certain && point == e.found && w != byRecoveryPoint
	atSnapshot := e.certain && snapshot == e.found && w != bySnapshot
	return atPoint || atSnapshot || point == snapshot && point > 0
}
