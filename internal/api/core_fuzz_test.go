package api

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/wire"
	"github.com/gregor-kafka/gregor/vfs"
)

// fuzzAnswers checks that whatever is answered can be read by kmsg, and that what kmsg
// reads as a request is answered.
func fuzzAnswers(f *testing.F, seeds ...kmsg.Request) {
	key := seeds[0].Key()
	for _, req := range seeds {
		for v := int16(0); v <= req.MaxVersion(); v++ {
			req.SetVersion(v)
			f.Add(v, req.AppendTo(nil))
		}
	}
	n := startNode(f, vfs.NewMem(), "data")
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nothing waits
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		r := &Request{Key: key, Version: version, Listener: testListener, Body: body}
		w := new(wire.Response)
		if err := n.Handle(ctx, r, w); err != nil || len(w.Buf) == 0 {
			return
		}
		resp := kmsg.ResponseForKey(key)
		resp.SetVersion(version)
		if err := resp.ReadFrom(w.Buf); err != nil {
			t.Errorf("version %d: %v in the answer %x", version, err, w.Buf)
		}
	})
}

func FuzzProduce(f *testing.F) {
	good := logtest.Values(f, record.BuilderOptions{}, "a", "b")
	twice := produceRequest(1, 0, good, good, good)
	twice.Topics[0].Partitions[2].Partition = 0
	twice.Topics = append(twice.Topics, twice.Topics[0])
	fuzzAnswers(f, produceRequest(1, 0, good), produceRequest(-1, 1, good, good, good[:20]), produceRequest(0, 0, nil), twice)
}

func FuzzFetch(f *testing.F) {
	session := fetchRequest(0, 0)
	session.SessionEpoch = 0
	forget := fetchRequest(1, 0)
	forget.SessionID, forget.SessionEpoch = 1, 1
	topic := kmsg.NewFetchRequestForgottenTopic()
	topic.Topic, topic.TopicID, topic.Partitions = "t", testTopicID, []int32{0, 1}
	forget.ForgottenTopics = append(forget.ForgottenTopics, topic)
	twice := fetchRequest(0, 0)
	twice.Topics = append(twice.Topics, twice.Topics[0])
	fuzzAnswers(f, fetchRequest(0, 0), session, forget, twice)
}
