// Compact measures the cleaning of one log: both phases against reading and checking the same
// bytes, the memory of the map, and what appends to another log feel of it.
//
//	go run ./bench/compact [-dir DIR] [-records N] [-keys N] [-value BYTES] [-batch N] [-codec NAME]
//
// Times are by the clock, so the machine must have nothing else to do; cpu is the processor
// time of the whole process.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/compaction"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/throttle"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

type options struct {
	dir                         string
	records, keys, value, batch int
	codec                       string
	mapBytes                    int64
	throttle                    float64
	latencySeconds, perSecond   int
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "where to put the log (default: a temporary directory)")
	flag.IntVar(&o.records, "records", 4_000_000, "records of the log")
	flag.IntVar(&o.keys, "keys", 1_000_000, "different keys")
	flag.IntVar(&o.value, "value", 100, "bytes of a value")
	flag.IntVar(&o.batch, "batch", 100, "records of a batch")
	flag.StringVar(&o.codec, "codec", "none", "none, gzip, snappy, lz4 or zstd")
	flag.Int64Var(&o.mapBytes, "map", 128<<20, "log.cleaner.dedupe.buffer.size")
	flag.Float64Var(&o.throttle, "throttle", 50e6, "log.cleaner.io.max.bytes.per.second while latencies are measured")
	flag.IntVar(&o.latencySeconds, "latency", 5, "seconds to measure appends, without and with a cleaning; 0 leaves it out")
	flag.IntVar(&o.perSecond, "appends", 500, "appends a second meanwhile, of 16 KiB")
	flag.Parse()
	if err := o.run(); err != nil {
		log.Fatal(err)
	}
}

func (o *options) run() (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "compact"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	l, err := o.fill("bench-0")
	if err != nil {
		return err
	}
	defer l.Close()
	limit, bytes, err := readLimit(l)
	if err != nil {
		return err
	}
	fmt.Printf("log        %d records, %d keys, %d B values, batches of %d, %s: %.0f MB\n", o.records, o.keys, o.value, o.batch, o.codec, float64(bytes)/1e6)
	fmt.Printf("read+CRC   %.2f GB/s\n", float64(bytes)/limit.Seconds()/1e9)
	if err := o.clean(l, limit); err != nil || o.latencySeconds == 0 {
		return err
	}
	return o.latencies()
}

func (o *options) open(name string) (*commitlog.Log, error) {
	c := commitlog.DefaultConfig()
	c.Compact, c.Delete, c.FileDeleteDelayMs, c.SegmentBytes = true, false, 0, 256<<20
	return commitlog.Open(commitlog.Options{FS: vfs.OS, Dir: filepath.Join(o.dir, name), Partition: topic.Partition{Topic: "bench"}, Config: c})
}

// fill makes a log with all records below the active segment.
func (o *options) fill(name string) (*commitlog.Log, error) {
	codecs := []string{"none", "gzip", "snappy", "lz4", "zstd"}
	codec := record.Codec(slices.Index(codecs, o.codec))
	if codec < 0 {
		return nil, fmt.Errorf("codec %s", o.codec)
	}
	l, err := o.open(name)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, o.value)
	for i := range value {
		value[i] = "0123456789abcdef"[rng.IntN(16)]
	}
	for n := 0; n < o.records; n += o.batch {
		b := record.NewBuilder(record.BuilderOptions{Codec: codec})
		for i := range o.batch {
			key := binary.BigEndian.AppendUint64(make([]byte, 8, 16), rng.Uint64N(uint64(o.keys)))
			if err := b.Append(record.Record{Offset: int64(i), Timestamp: time.Now().UnixMilli(), Key: key, Value: value}); err != nil {
				return nil, err
			}
		}
		if _, err := l.AppendAsLeader(b.Build(), 0, commitlog.AppendOptions{}); err != nil {
			return nil, err
		}
	}
	l.SetHighWatermark(l.Offsets().End)
	return l, errors.Join(l.Roll(), l.Flush())
}

// readLimit returns how long it takes to read the log in large pieces and compute the
// checksum of each batch, which is the least that a phase can take.
func readLimit(l *commitlog.Log) (best time.Duration, bytes int64, err error) {
	v := l.CleanView()
	defer v.Release()
	best = time.Duration(1 << 62)
	for range 3 {
		bytes = 0
		began := time.Now()
		for _, s := range v.Segments {
			for b, err := range s.Batches(0, s.Bytes) {
				if err == nil {
					err = b.Batch.Verify()
				}
				if err != nil {
					return 0, 0, err
				}
				bytes += int64(len(b.Batch))
			}
		}
		best = min(best, time.Since(began))
	}
	return best, bytes, nil
}

func (o *options) plan(l *commitlog.Log) compaction.Plan {
	segments := l.Offsets().CleanSegments()
	return compaction.Plan{FirstUncleanable: segments[len(segments)-1].BaseOffset()}
}

// clean cleans once and reports both phases.
func (o *options) clean(l *commitlog.Log, limit time.Duration) error {
	before, cpu := residentBytes(), processorTime()
	c := compaction.New(compaction.Options{MapBytes: o.mapBytes, LoadFactor: 0.9, BufferBytes: 512 << 10, MaxMessageBytes: 1 << 20})
	r, err := c.Clean(context.Background(), l, o.plan(l))
	if err != nil {
		return err
	}
	cpu = processorTime() - cpu
	phase := func(name string, records, bytes int64, took time.Duration, limits float64) {
		fmt.Printf("%-10s %.2f M records/s, %.2f GB/s, %.2fx of read+CRC\n", name, float64(records)/took.Seconds()/1e6,
			float64(bytes)/took.Seconds()/1e9, limits*limit.Seconds()/took.Seconds())
	}
	phase("map", r.MapRecords, r.MapBytesRead, r.MapDuration, float64(r.MapRecords)/float64(o.records))
	phase("rewrite", r.RecordsRead, r.BytesRead, r.RewriteDuration, 1)
	phase("both", r.RecordsRead, r.MapBytesRead+r.BytesRead, r.MapDuration+r.RewriteDuration, 1)
	fmt.Printf("           cpu %.0f ns a record, %d records left of %d, %d batches copied of %d, end %d\n", float64(cpu.Nanoseconds())/float64(r.RecordsRead),
		r.RecordsWritten, r.RecordsRead, r.BatchesCopied, r.BatchesRead, r.EndOffset)
	fmt.Printf("memory     %d keys, resident %.0f MB before, %.0f MB after\n", r.MapEntries, before/1e6, residentBytes()/1e6)
	return nil
}

// latencies appends to one log at a steady rate, without and with a throttled cleaning of
// another beside it.
func (o *options) latencies() error {
	l, err := o.fill("bench-1")
	if err != nil {
		return err
	}
	defer l.Close()
	beside, err := o.open("appends-0")
	if err != nil {
		return err
	}
	defer beside.Close()
	b := record.NewBuilder(record.BuilderOptions{})
	if err := b.Append(record.Record{Key: []byte("k"), Value: make([]byte, 16<<10)}); err != nil {
		return err
	}
	set := b.Build()
	quiet, err := o.appends(beside, set)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		c := compaction.New(compaction.Options{MapBytes: o.mapBytes, LoadFactor: 0.9, BufferBytes: 512 << 10, Throttle: throttle.New(o.throttle)})
		for ctx.Err() == nil {
			if _, err := c.Clean(ctx, l, o.plan(l)); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	busy, err := o.appends(beside, set)
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	p99 := func(l []time.Duration) time.Duration { return l[len(l)*99/100] }
	fmt.Printf("append p99 %v without, %v with a cleaning of %.0f MB/s: %.2fx\n", p99(quiet), p99(busy), o.throttle/1e6, float64(p99(busy))/float64(p99(quiet)))
	return nil
}

func (o *options) appends(l *commitlog.Log, set []byte) (took []time.Duration, err error) {
	ticker := time.NewTicker(time.Second / time.Duration(o.perSecond))
	defer ticker.Stop()
	for range o.latencySeconds * o.perSecond {
		<-ticker.C
		began := time.Now()
		if _, err := l.AppendAsLeader(slices.Clone(set), 0, commitlog.AppendOptions{}); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took, nil
}
