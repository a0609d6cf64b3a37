package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gregor-kafka/gregor"
	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/web"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gregor": main})
}

// Scripts run beside a broker of their own, whose address is in GREGOR_BROKER. FREE is an
// address that nothing listens on, for a broker that a script starts itself.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setup,
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"listening": listening, "http": httpGet, "flip": flip, "undecided": undecided},
	})
}

func setup(env *testscript.Env) error {
	b, err := gregor.Start(context.Background(), gregor.Options{
		DataDir: env.WorkDir + "/broker", Listen: "127.0.0.1:0",
		// Records of scripts are of 2023: retention would delete them half a minute after the start.
		Set: []string{"group.initial.rebalance.delay.ms=0", "log.retention.ms=-1"},
	})
	if err != nil {
		return err
	}
	env.Defer(func() {
		if err := b.Close(context.Background()); err != nil {
			env.T().Log(err)
			env.T().FailNow()
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	env.Setenv("FREE", ln.Addr().String())
	env.Setenv("GREGOR_BROKER", b.Addr())
	return ln.Close()
}

// listening waits until somebody listens on an address; with ! it fails if somebody does.
func listening(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: listening host:port")
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		c, err := net.Dial("tcp", args[0])
		if err == nil {
			c.Close()
		}
		switch {
		case neg && err == nil:
			ts.Fatalf("somebody listens on %s", args[0])
		case neg || err == nil:
			return
		case !strings.Contains(err.Error(), "refused") || time.Now().After(deadline):
			ts.Fatalf("nobody listens: %v", err)
		}
		time.Sleep(5 * time.Millisecond) // another process starts
	}
}

// httpGet asks the broker of a data directory for a path, as curl --unix-socket does, and prints
// the answer.
func httpGet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: http directory path")
	}
	socket := filepath.Join(ts.MkAbs(args[0]), web.SocketName)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	c := http.Client{Transport: transport, Timeout: 30 * time.Second}
	response, err := c.Get("http://gregor" + args[1])
	ts.Check(err)
	defer response.Body.Close()
	_, err = io.Copy(ts.Stdout(), response.Body)
	ts.Check(err)
}

// flip turns a bit of a file: the first one of the last place that has a text.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip file text")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	at := bytes.LastIndex(data, []byte(args[1]))
	if at < 0 {
		ts.Fatalf("%s has no %q", path, args[1])
	}
	data[at] ^= 0x80
	ts.Check(os.WriteFile(path, data, 0o644))
}

// undecided makes the log of a partition that has none one of a transaction, whose marker is nothing
// but zeros, and a record, as a crash leaves it.
func undecided(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: undecided directory")
	}
	dir := ts.MkAbs(args[0])
	batch := func(offset int64, producer *record.Producer, value string) []byte {
		b := record.NewBuilder(record.BuilderOptions{BaseOffset: offset, Producer: producer, Transactional: producer != nil})
		ts.Check(b.Append(record.Record{Offset: offset, Timestamp: 1700000000000, Value: []byte(value)}))
		return b.Build()
	}
	log := batch(0, &record.Producer{ID: 7}, "transactional")
	marker := record.EndTxnMarker(record.EndTxn{Type: record.ControlCommit, BaseOffset: 1, ProducerID: 7, Timestamp: 1700000000000})
	clear(marker)
	log = append(append(log, marker...), batch(2, nil, "plain")...)
	ts.Check(os.WriteFile(filepath.Join(dir, segment.Name(0, segment.LogFile, "")), log, 0o644))
	err := os.Remove(filepath.Join(dir, "..", checkpoint.CleanShutdown))
	if !errors.Is(err, fs.ErrNotExist) {
		ts.Check(err)
	}
}
