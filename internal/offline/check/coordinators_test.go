package check

import (
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A record of a coordinator says which partition it belongs to.
func TestCheckCoordinatorPlaces(t *testing.T) {
	f := func(name, key, want string) {
		t.Helper()
		x := newFixture(t)
		id, dir := uuid.New(), uuid.New()
		records := []metadata.Record{&metadata.TopicRecord{Name: name, TopicID: id}}
		for i := range int32(4) {
			p := partitionIn(id, dir, 0)
			p.PartitionID = i
			records = append(records, p)
		}
		x.metadataLog("/data", records...)
		b := record.NewBuilder(record.BuilderOptions{})
		if err := b.Append(record.Record{Key: []byte(key)}); err != nil {
			t.Fatal(err)
		}
		offlinetest.MustWrite(t, x.Mem, "/data/"+name+"-1/"+offlinetest.Log0, b.Build())
		var got []string
		for _, f := range mustCheck(t, offlinetest.ReadOnly{FS: x.Mem}, "/data").Findings {
			if strings.Contains(f.Message, "belongs to") {
				got = append(got, f.String())
			}
		}
		if n := len(got); want == "" && n > 0 || want != "" && (n != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%s %q: got %q, want %q", name, key, got, want)
		}
	}
	const right, wrong = "\x00\x02\x00\x11g-consumer-static", "\x00\x02\x00\x05g-txn"
	f(topic.ConsumerOffsets, right, "")
	f(topic.ConsumerOffsets, wrong, `note: /data/__consumer_offsets-1/00000000000000000000.log: byte 0 (offset 0): a record of "g-txn", which belongs to partition 0 of 4`)
	f(topic.TransactionState, wrong, "belongs to partition 0 of 4")
	f(topic.ConsumerOffsets, "\x00\x02\x00\x06g-txn", "") // cut
	f(topic.ConsumerOffsets, "", "")
	f("orders-of", wrong, "")
}
