package wire

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStats(t *testing.T) {
	var kinds atomic.Int32
	s, addr := startServer(t, Config{Handler: handlerFunc(func(ctx context.Context, r *Request, w *Response) error {
		r.Conn.SetSoftware(Software{Name: fmt.Sprintf("kind-%03d", kinds.Add(1)), Version: "1"})
		return echo(ctx, r, w)
	})})
	s.Limit(ConnectionLimits{All: softwareMax + 3, PerIP: math.MaxInt})
	silent := dial(t, addr)
	for i := range int32(softwareMax + 2) {
		c := dial(t, addr)
		c.Write(frame(i, nil))
		wantAnswer(t, c, i, nil)
	}
	refused := dial(t, addr)
	if _, err := refused.Read(make([]byte, 1)); err == nil {
		t.Fatal("a connection too many was served")
	}
	got := s.Stats()
	want := []ListenerStats{{Name: "PLAINTEXT", Connections: softwareMax + 3, Accepted: softwareMax + 3, Refused: 1}}
	if diff := cmp.Diff(want, got.Listeners); diff != "" {
		t.Errorf("listeners: -want +got\n%s", diff)
	}
	if len(got.Software) != softwareMax+1 {
		t.Errorf("%d kinds of clients, want %d and the others", len(got.Software), softwareMax)
	}
	connections := 0
	for _, kind := range got.Software {
		connections += kind.Connections
	}
	if connections != softwareMax+3 {
		t.Errorf("%d connections of all kinds, want %d", connections, softwareMax+3)
	}
	if got.BufferBytes != 0 || got.BufferBytesMax != 512<<20 {
		t.Errorf("%d of %d bytes in use, want none of 512 MiB", got.BufferBytes, got.BufferBytesMax)
	}
	silent.Close()
	for s.Stats().Listeners[0].Connections != softwareMax+2 { // until the server has noticed
		runtime.Gosched()
	}
}
