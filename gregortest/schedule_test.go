package gregortest_test

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/gregor-kafka/gregor"
	"github.com/gregor-kafka/gregor/gregortest"
	"github.com/gregor-kafka/gregor/vfs"
)

var (
	schedules    = flag.Int("schedules", 1000, "how many random schedules are run")
	scheduleSeed = flag.Uint64("schedule", 0, "the seed of the first of them")
)

// Whatever happens to a broker and when, nothing is lost that was acknowledged and flushed: before the
// acknowledgement (flush.messages=1), or by a clean stop. A kill alone loses nothing that was
// acknowledged; a crash of the disk may take the rest from some offset on.
func TestRandomSchedules(t *testing.T) {
	count := *schedules
	if testing.Short() || raceDetector {
		count = min(count, 50)
	}
	began := time.Now()
	for i := range count {
		seed := *scheduleSeed + uint64(i)
		synctest.Test(t, func(t *testing.T) { newSchedule(t, seed).run() })
		if t.Failed() {
			t.Fatalf("run it again with -run %s -schedules=1 -schedule=%d", t.Name(), seed)
		}
	}
	t.Logf("%d schedules in %v", count, time.Since(began).Round(time.Millisecond))
}

// A schedule is one random history of one broker.
type schedule struct {
	t       *testing.T
	rng     *rand.Rand
	cluster *gregortest.Cluster
	node    *gregortest.Node
	topics  []*sentTo
	client  *kgo.Client
	history []string
}

// A sentTo is a topic with all that was sent to it, in order.
type sentTo struct {
	name    string
	flushed bool // before the acknowledgement
	sent    []sentRecord
}

type sentRecord struct {
	value string
	state recordState
}

// A recordState is what is promised of a record.
type recordState int

const (
	unknown recordState = iota // not acknowledged: it may be there or not
	written                    // acknowledged: it survives a kill
	durable                    // it survives anything
)

func newSchedule(t *testing.T, seed uint64) *schedule {
	quiet := func(o *gregor.Options) { o.Logger = slog.New(slog.DiscardHandler) } // there will be complaints
	s := &schedule{t: t, rng: rand.New(rand.NewPCG(seed, 10)), cluster: gregortest.NewCluster(t, 1, quiet, gregortest.Seed(seed))}
	s.node = s.cluster.Node(1)
	s.topics = []*sentTo{{name: "flushed", flushed: true}, {name: "plain"}}
	createIn(t, s.cluster, "flushed", "flush.messages", "1", "internal.segment.bytes", "2000")
	createIn(t, s.cluster, "plain", "internal.segment.bytes", "2000")
	s.client = connectTo(t, s.cluster, kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.RecordDeliveryTimeout(time.Second), kgo.ProducerLinger(0))
	return s
}

func (s *schedule) run() {
	defer s.client.Close()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("history: %q", s.history)
		}
	}()
	for range 3 + s.rng.IntN(4) {
		s.produceSome()
		s.end()
		s.node.Start()
		s.compare()
	}
}

func (s *schedule) note(format string, args ...any) {
	s.history = append(s.history, fmt.Sprintf(format, args...))
}

// produceSome sends records, and now and then the broker's disk is gone in the middle of it.
func (s *schedule) produceSome() {
	if s.rng.IntN(2) == 0 {
		after := s.rng.IntN(20)
		s.note("the process ends after %d changes", after)
		killAfter(s.node.Disk(), after)
	}
	for range s.rng.IntN(8) {
		switch s.rng.IntN(6) {
		case 0:
			pause := time.Duration(s.rng.Int64N(int64(2 * time.Minute)))
			s.note("%v pass", pause)
			time.Sleep(pause)
		default:
			s.produce(s.topics[s.rng.IntN(len(s.topics))])
		}
	}
}

func killAfter(disk *vfs.Mem, changes int) {
	var left atomic.Int64
	left.Store(int64(changes))
	disk.SetHook(func(op vfs.Op) error {
		if op.Kind.Changes() && left.Add(-1) < 0 {
			disk.SetHook(nil)
			disk.Kill() // Node.Kill takes over what is left
		}
		return nil
	})
}

func (s *schedule) produce(to *sentTo) {
	r := &kgo.Record{Topic: to.name, Value: fmt.Appendf(make([]byte, 0, 500), "%d-%0*d", len(to.sent), 1+s.rng.IntN(400), 0)}
	sent := sentRecord{value: string(r.Value)}
	if err := s.client.ProduceSync(s.t.Context(), r).FirstErr(); err == nil {
		sent.state = written
		if to.flushed {
			sent.state = durable
		}
	}
	s.note("produced %d to %s: state %d", len(to.sent), to.name, sent.state)
	to.sent = append(to.sent, sent)
}

// end stops, kills or crashes the broker.
func (s *schedule) end() {
	switch way := s.rng.IntN(3); way {
	case 0:
		s.note("stopped")
		if err := s.stop(); err == nil {
			s.each(func(r *sentRecord) {
				if r.state == written {
					r.state = durable
				}
			})
		}
	case 1:
		s.note("killed")
		s.node.Kill()
	case 2:
		s.note("crashed")
		s.node.Crash(s.rng)
		s.each(func(r *sentRecord) {
			if r.state == written {
				r.state = unknown
			}
		})
	}
}

// stop stops the broker cleanly, if its disk is still there.
func (s *schedule) stop() error {
	if _, err := s.node.Disk().Stat("/data"); err != nil {
		s.node.Kill()
		return errors.New("it was killed before")
	}
	s.node.Disk().SetHook(nil)
	s.node.Stop()
	return nil
}

func (s *schedule) each(f func(*sentRecord)) {
	for _, to := range s.topics {
		for i := range to.sent {
			f(&to.sent[i])
		}
	}
}

// compare reads everything: what is promised is there, in order, once, and nothing else than what was sent. What
// is not there must not come back.
func (s *schedule) compare() {
	for _, to := range s.topics {
		got := readAll(s.t, s.client, to.name)
		kept := to.sent[:0:0]
		for _, r := range to.sent {
			switch {
			case len(got) > 0 && got[0] == r.value:
				got = got[1:]
				r.state = max(r.state, written) // somebody has read it
				kept = append(kept, r)
			case r.state != unknown:
				s.t.Errorf("%s: %q is lost, its state is %d", to.name, r.value, r.state)
			}
		}
		if len(got) > 0 {
			s.t.Errorf("%s: %q was not sent, or is there twice or in another place", to.name, got)
		}
		to.sent = kept
	}
}
