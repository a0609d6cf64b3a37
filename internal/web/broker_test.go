package web_test

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/broker/brokertest"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/web"
	"github.com/gregor-kafka/gregor/vfs"
)

func init() {
	web.StartBroker = func(t testing.TB, records ...metadata.Record) *web.Server {
		t.Helper()
		b, _ := brokertest.Start(t, vfs.NewMem())
		brokertest.Commit(t, b, records...)
		return b.Web()
	}
}
