package offlinetest

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A Fixture is a log directory with one partition of two segments, [0,20) and [20,40), of
// batches of two records, as a clean stop leaves it.
type Fixture struct {
	T   *testing.T
	Mem *vfs.Mem
}

// FixtureDir is the directory of the fixture's partition.
const FixtureDir = "/data/orders-0"

// NewFixture makes one.
func NewFixture(t *testing.T) *Fixture {
	x := &Fixture{t, vfs.NewMem()}
	id := uuid.New()
	x.Put("../meta.properties", []byte("version=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMQ\nnode.id=1\ndirectory.id="+uuid.New().String()+"\n"))
	x.Put("../.kafka_cleanshutdown", nil)
	x.Put("partition.metadata", []byte("version: 0\ntopic_id: "+id.String()))
	x.Put(checkpoint.LeaderEpochs, []byte("0\n2\n0 0\n3 20\n"))
	x.Offsets(checkpoint.RecoveryPoints, 40)
	x.Offsets(checkpoint.HighWatermarks, 40)
	x.Put("../"+checkpoint.LogStartOffsets, []byte("0\n0\n"))
	x.Segment(0, 20, 0)
	x.Segment(20, 40, 3)
	return x
}

// Path is that of a file of the partition.
func (x *Fixture) Path(name string) string { return filepath.Join(FixtureDir, name) }

func (x *Fixture) Put(name string, data []byte) { MustWrite(x.T, x.Mem, x.Path(name), data) }

func (x *Fixture) Get(name string) []byte {
	data, err := vfs.ReadFile(x.Mem, x.Path(name), 1<<20)
	if err != nil {
		x.T.Fatal(err)
	}
	return data
}

func (x *Fixture) Remove(name string) {
	if err := x.Mem.Remove(x.Path(name)); err != nil {
		x.T.Fatal(err)
	}
}

func (x *Fixture) Change(name string, change func([]byte) []byte) { x.Put(name, change(x.Get(name))) }

func (x *Fixture) Offsets(name string, offset int64) {
	p := topic.Partition{Topic: "orders"}
	if err := checkpoint.WriteOffsets(x.Mem, "/data/"+name, map[topic.Partition]int64{p: offset}); err != nil {
		x.T.Fatal(err)
	}
}

// Batch makes one of two records at an offset.
func Batch(offset int64, epoch int32, o record.BuilderOptions) []byte {
	o.BaseOffset, o.LeaderEpoch = offset, new(epoch)
	b := record.NewBuilder(o)
	for i := range int64(2) {
		b.Append(record.Record{Offset: offset + i, Timestamp: 1000 + offset + i, Value: []byte("value")})
	}
	return b.Build()
}

// Segment writes one with an index entry for its last batch.
func (x *Fixture) Segment(from, to int64, epoch int32) {
	var log []byte
	last := 0
	for o := from; o < to; o += 2 {
		last = len(log)
		log = append(log, Batch(o, epoch, record.BuilderOptions{})...)
	}
	index := binary.BigEndian.AppendUint32(nil, uint32(to-1-from))
	index = binary.BigEndian.AppendUint32(index, uint32(last))
	times := binary.BigEndian.AppendUint64(nil, uint64(1000+to-1))
	times = binary.BigEndian.AppendUint32(times, uint32(to-1-from))
	x.Put(segment.Name(from, segment.LogFile, ""), log)
	x.Put(segment.Name(from, segment.IndexFile, ""), index)
	x.Put(segment.Name(from, segment.TimeIndexFile, ""), times)
}

// Files of the fixture.
const (
	Log0   = "00000000000000000000.log"
	Log20  = "00000000000000000020.log"
	Index0 = "00000000000000000000.index"
	Times0 = "00000000000000000000.timeindex"
)

// Lost writes down what is lost.
func (x *Fixture) Lost(list ...checkpoint.Loss) {
	if err := checkpoint.WriteLosses(x.Mem, x.Path(checkpoint.Losses), list); err != nil {
		x.T.Fatal(err)
	}
}

// Undecided writes down transactions that nothing decides.
func (x *Fixture) Undecided(list ...checkpoint.LostTransaction) {
	if err := checkpoint.WriteTransactions(x.Mem, x.Path(checkpoint.TransactionsFile), list); err != nil {
		x.T.Fatal(err)
	}
}
