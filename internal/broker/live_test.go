package broker

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Settings of the log directories that Kafka changes at run time, changed at run time. A pool's
// size changes by a factor of two at most.
func TestLogDirConfigTakesEffect(t *testing.T) {
	b := start(t, t.TempDir(), "log.retention.ms=-1")
	a := admin(t, b)
	createTopic(t, a, "orders")
	old := logtest.Batch(t, record.BuilderOptions{Producer: &record.Producer{ID: 7}}, record.Record{Timestamp: time.Now().Add(-time.Hour).UnixMilli()})
	dial(t, b).mustProduce("orders", old)
	log := b.logs.Log(topic.Partition{Topic: "orders"})
	if n := log.ExpireProducers(time.Now()); n != 0 || len(log.Producers()) != 1 {
		t.Fatalf("%d producers expired, %v are left", n, log.Producers())
	}
	for _, set := range [][2]string{
		{"producer.id.expiration.ms", "60000"}, {"num.recovery.threads.per.data.dir", "4"}, {"log.segment.delete.delay.ms", "0"},
	} {
		if err := setBrokers(t, a, set[0], set[1]); err != nil {
			t.Errorf("%s: %v", set[0], err)
		}
	}
	if err := setBrokers(t, a, "num.recovery.threads.per.data.dir", "9"); !errors.Is(err, kerr.InvalidRequest) {
		t.Errorf("more than twice the threads: got %v", err)
	}
	if err := setBrokers(t, a, "num.replica.alter.log.dirs.threads", "3"); !errors.Is(err, kerr.InvalidRequest) && !errors.Is(err, kerr.InvalidConfig) {
		t.Errorf("a key that is read only: got %v", err)
	}
	eventually(t, "the producer expires", func() bool { return log.ExpireProducers(time.Now()) == 1 })
}
