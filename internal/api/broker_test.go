package api_test

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/api"
	"github.com/gregor-kafka/gregor/internal/broker/brokertest"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/vfs"
)

func init() {
	api.StartBroker = func(t testing.TB, fsys vfs.FS, settings ...string) api.RunningBroker {
		t.Helper()
		b, stop := brokertest.Start(t, fsys, settings...)
		commit := func(records ...metadata.Record) {
			t.Helper()
			brokertest.Commit(t, b, records...)
		}
		return api.RunningBroker{API: b.API(), Addr: b.Addr(), Commit: commit, Stop: stop}
	}
}
