package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/offline/check"
	"github.com/gregor-kafka/gregor/internal/offline/schema"
	"github.com/gregor-kafka/gregor/internal/record"
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
	b := record.NewBuilder(record.BuilderOptions{})
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

// All options of kafka-dump-log 4.4 are known by their names.
func TestDumpHasKafkasOptions(t *testing.T) {
	cmd := dumpCommand()
	for _, name := range []string{
		"cluster-metadata-decoder", "deep-iteration", "files", "index-sanity-check", "key-decoder-class", "max-bytes", "max-message-size",
		"offsets-decoder", "print-data-log", "remote-log-metadata-decoder", "share-group-state-decoder", "skip-record-metadata",
		"transaction-log-decoder", "value-decoder-class", "verify-index-only",
	} {
		if cmd.Flags().Lookup(name) == nil {
			t.Errorf("no --%s", name)
		}
	}
}

func TestCheckExitCodes(t *testing.T) {
	f := func(want int, args ...string) {
		t.Helper()
		if _, err := runOffline(t, append([]string{"check"}, args...)...); err == nil || exitCode(err) != want {
			t.Errorf("%v: error %v, want exit code %d", args, err, want)
		}
	}
	f(2)
	f(2, "--no-such-flag", "x")
	f(2, filepath.Join(t.TempDir(), "nothing"))
	dir := partitionDir(t)
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), []byte("no batch, but longer than one has to be at least"), 0o644); err != nil {
		t.Fatal(err)
	}
	f(1, dir)
	f(1, "--json", dir)
}

func TestCheckShowsProgress(t *testing.T) {
	var out bytes.Buffer
	showProgress(&out, check.Progress{Done: 1 << 30, Total: 4 << 30, Partitions: 3, Elapsed: 2 * time.Second})
	if want := "\r 25%  1.0 GiB of 4.0 GiB, 3 partitions done, 512.0 MiB/s, 6s left\x1b[K"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestDumpRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, err := runOffline(t, append([]string{"dump"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != 2 {
			t.Errorf("%v: error %v, want %q and exit code 2", args, err, want)
		}
	}
	f("name files")
	f("cannot run Java classes", "--key-decoder-class", "com.example.Decoder", "y")
	f("cannot run Java classes", "--value-decoder-class", "org.apache.kafka.tools.api.DefaultDecoder", "y")
	f("unknown flag", "--no-such-flag")
	f("only one decoder", "--offsets-decoder", "--transaction-log-decoder", "y")
}

// Kafka's decoders are known by the names of their classes, of today and of before.
func TestDecoderClasses(t *testing.T) {
	f := func(name string, want schema.Class) {
		t.Helper()
		if got, err := class("value", name); got != want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
	f("org.apache.kafka.tools.api.StringDecoder", schema.StringClass)
	f("org.apache.kafka.tools.api.IntegerDecoder", schema.IntegerClass)
	f("org.apache.kafka.tools.api.LongDecoder", schema.LongClass)
	f("kafka.serializer.LongDecoder", schema.LongClass)
	f("IntegerDecoder", schema.IntegerClass)
}
