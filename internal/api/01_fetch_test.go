package api

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/wire"
)

// Who follows says so in a tagged field, from version 15 on and by that tag alone.
func TestFetchReplicaState(t *testing.T) {
	f := func(version int16, tag byte, want int32) {
		t.Helper()
		work := &fetchWork{version: version}
		work.follower.ID = -1
		d := wire.NewDecoder([]byte{2, 0, 1, 'x', tag, 12, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9})
		work.readTags(&d)
		wantEpoch := int64(0)
		if want >= 0 {
			wantEpoch = 9
		}
		if got := work.follower; d.Bad() || d.Len() != 0 || got.ID != want || got.BrokerEpoch != wantEpoch {
			t.Errorf("version %d, tag %d: got %+v, %d bytes left, want replica %d", version, tag, got, d.Len(), want)
		}
	}
	f(14, replicaStateTag, -1)
	f(15, replicaStateTag, 7)
	f(17, replicaStateTag, 7)
	f(17, replicaStateTag+1, -1)
	f(14, replicaStateTag+1, -1)
}
