package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/record"
)

// runOffline executes a command line and returns its standard output.
func runOffline(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// partitionDir makes the files of a partition with one batch.
func partitionDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "orders-3")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b := record.NewBuilder(record.BuilderOptions{LeaderEpoch: -1})
	for i := range int64(3) {
		if err := b.Append(record.Record{Offset: i, Timestamp: 1700000000000, Key: []byte("k"), Value: []byte("value")}); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string][]byte{
		"00000000000000000000.log": b.Build(), "00000000000000000000.index": nil, "00000000000000000000.timeindex": nil,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDumpAndCheckCommands(t *testing.T) {
	dir := partitionDir(t)
	log := filepath.Join(dir, "00000000000000000000.log")
	f := func(wantErr error, want string, args ...string) {
		t.Helper()
		out, err := runOffline(t, args...)
		if !errors.Is(err, wantErr) || !strings.Contains(out, want) {
			t.Errorf("%v: error %v, want %v; output without %q:\n%s", args, err, wantErr, want, out)
		}
	}
	f(nil, "payload: value", "dump", "--print-data-log", log)
	f(nil, "baseOffset: 0 lastOffset: 2 count: 3", "dump", "--files", log)
	f(nil, `{"topic":"orders","partition":3,"offset":2,`, "dump", "--json", dir)
	f(nil, "0 damaged places", "check", dir)

	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(log, data, 0o644); err != nil {
		t.Fatal(err)
	}
	f(errDamage, "byte 0 (offset 0): batch of ", "check", dir)
	f(errDamage, `"position":0,"offset":0,"severity":"damage","message":"batch of `, "check", "--json", dir)
	if _, err := runOffline(t, "dump", log); err == nil {
		t.Error("dump of a damaged file: no error")
	}
}

func TestDumpRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if _, err := runOffline(t, append([]string{"dump"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
	f("name files")
	f("Java classes", "--key-decoder-class", "x", "y")
	f("only one decoder", "--offsets-decoder", "--transaction-log-decoder", "y")
}
