package check

import (
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// A .log file that is shorter than gregor-clean-state says was cut, if that is of the last stop.
func TestShortened(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const dir = "/data/orders-0"
	const shorter, damaged = "byte 0: the file has 0 bytes, and had ", "gregor-clean-state: damaged"
	f := func(name string, change func(mem *vfs.Mem, state []byte), want string) {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			l, err := commitlog.Open(commitlog.Options{FS: mem, Dir: dir, Partition: topic.Partition{Topic: "orders"}, Config: commitlog.DefaultConfig(), Logger: slog.New(slog.DiscardHandler)})
			must(err)
			for range 2 {
				_, err := l.AppendAsLeader(offlinetest.Batch(0, 3, record.BuilderOptions{}), 0, commitlog.AppendOptions{})
				must(err)
				must(l.Roll())
			}
			must(l.Close())
			known, err := l.CleanState()
			must(err)
			must(vfs.WriteFileAtomic(mem, "/data/"+checkpoint.CleanShutdown, nil))
			marker, err := mem.Stat("/data/" + checkpoint.CleanShutdown)
			must(err)
			state := binary.BigEndian.AppendUint64(nil, uint64(marker.ModTime().UnixNano()))
			state = append(state, 1, byte(len("orders")))
			state = append(state, "orders\x00"...)
			state = summed(known.AppendTo(state))
			must(vfs.WriteFileAtomic(mem, "/data/gregor-clean-state", state))
			change(mem, state)
			report, err := Dirs(context.Background(), []string{"/data"}, Options{FS: mem})
			must(err)
			var got []string
			for _, f := range report.Findings {
				got = append(got, f.String())
			}
			for _, text := range []string{shorter, damaged} {
				if found := slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, text) }); found != (text == want) {
					t.Errorf("%q: %v in %q", text, found, got)
				}
			}
		})
	}
	cut := func(mem *vfs.Mem) {
		file, err := mem.OpenFile(dir+"/00000000000000000000.log", os.O_RDWR, 0)
		must(err)
		must(file.Truncate(0))
		must(file.Close())
	}
	f("whole", func(*vfs.Mem, []byte) {}, "")
	f("cut", func(mem *vfs.Mem, _ []byte) { cut(mem) }, shorter)
	f("cut, and a stop of Kafka", func(mem *vfs.Mem, state []byte) {
		cut(mem)
		state[8] ^= 1
		must(vfs.WriteFileAtomic(mem, "/data/gregor-clean-state", summed(state[8:])))
	}, "")
	f("cut, and no clean stop", func(mem *vfs.Mem, _ []byte) {
		cut(mem)
		must(mem.Remove("/data/" + checkpoint.CleanShutdown))
	}, "")
	f("cut, and the state is damaged", func(mem *vfs.Mem, state []byte) {
		cut(mem)
		state[20] ^= 1
		must(vfs.WriteFileAtomic(mem, "/data/gregor-clean-state", state))
	}, damaged)
	for size := range 60 { // what comes behind the header ends anywhere
		f("the state ends early", func(mem *vfs.Mem, state []byte) {
			must(vfs.WriteFileAtomic(mem, "/data/gregor-clean-state", summed(state[8:16+size])))
		}, "")
	}
	f("the state is endless", func(mem *vfs.Mem, state []byte) {
		must(vfs.WriteFileAtomic(mem, "/data/gregor-clean-state", summed(append(state[8:16:16], "\xff\xff\xff\xff\x07\x01a\xff\xff\xff\xff\x07"...))))
	}, "")
}

// summed puts the magic bytes and the checksum in front of the rest of gregor-clean-state.
func summed(rest []byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte("GCS1"), crc32c.Checksum(rest))
	return append(b, rest...)
}
