package broker

import (
	"errors"
	"testing"

	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// A voter says that it is new when it knows that, not before: who counts new ones may make a cluster beside the one that
// is there.
func TestVoterSaysItsCluster(t *testing.T) {
	v := &voter{}
	ask := func() (string, error) {
		w := new(wire.Response)
		err := v.Handle(t.Context(), &wire.Request{Key: quorum.ClusterKey}, w)
		return string(w.Buf), err
	}
	if answer, err := ask(); !errors.Is(err, errNotReady) || answer != "" {
		t.Errorf("while it reads its directories: %q, %v", answer, err)
	}
	for id, want := range map[string]string{"": "\x00\x00", "abc": "\x00\x03abc"} {
		v.cluster.Store(&id)
		if answer, err := ask(); err != nil || answer != want {
			t.Errorf("cluster %q: %q, %v", id, answer, err)
		}
	}
	if err := v.Handle(t.Context(), &wire.Request{Key: 18}, new(wire.Response)); !errors.Is(err, errNotReady) {
		t.Errorf("a request before the controller runs: %v", err)
	}
	if err := v.Handle(t.Context(), &wire.Request{Key: quorum.HelloKey, Body: []byte{1}}, new(wire.Response)); err == nil {
		t.Error("a malformed hello is answered")
	}
}
