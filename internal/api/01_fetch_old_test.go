package api

import (
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A short stretch is converted before it is sent, as long as not too much of the answer was. What is not is
// promised: its size is known, and its messages are made while they are sent.
func TestOldFetchConvertsAhead(t *testing.T) {
	n := oldLog(t, 2)
	c := n.client()
	for range 10 {
		c.produce(9, 1, 0, logtest.Values(t, record.BuilderOptions{}, strings.Repeat("x", 10_000)))
	}
	log := n.Logs.Log(topic.Partition{Topic: "t"})
	f := func(bytes, ready int, promised bool) {
		t.Helper()
		read, err := log.Read(0, bytes, commitlog.ReadUncommitted, segment.WholeFirst)
		if err != nil {
			t.Fatal(err)
		}
		o := oldRecords{conversions: n.conversions, batches: batchReader{slice: read.Slice}, converter: record.DownConverter{Magic: 1}}
		defer o.Release()
		if err := o.begin(fetchSizeMax, ready); err != nil || o.promised() != promised || o.Size() == 0 {
			t.Errorf("%d bytes behind %d: size %d, promised %v, %v", bytes, ready, o.Size(), o.promised(), err)
		}
	}
	f(20_000, 0, false)
	f(20_000, oldReadyMax-1, false)
	f(20_000, oldReadyMax, true)
	f(100_000, 0, true)
	f(100_000, oldReadyMax, true)
}
