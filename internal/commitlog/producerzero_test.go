package commitlog

import (
	"bytes"
	"testing"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// The first producer id that there is is 0, and it is one like any other, for leaders and followers.
func TestProducerZero(t *testing.T) {
	set := spec{records: 2, producer: &record.Producer{ID: 0}}.build(t)
	l := openLog(t, testOptions(vfs.NewMem()))
	mustAppend(t, l, bytes.Clone(set))
	if info := mustAppend(t, l, bytes.Clone(set)); !info.Duplicate || info.FirstOffset != 0 {
		t.Errorf("the same batch again: got %+v", info)
	}
	follower := openLog(t, testOptions(vfs.NewMem()))
	if _, err := follower.AppendAsFollower(set, 0); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*Log{"leader": l, "follower": follower} {
		if list := l.Producers(); len(list) != 1 || list[0].ProducerID != 0 || list[0].LastSequence != 1 {
			t.Errorf("%s: producers %+v", name, list)
		}
	}
}
