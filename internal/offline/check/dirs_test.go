package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// What a log directory says about itself, its partitions and its neighbours.
func TestCheckLogDirectory(t *testing.T) {
	f := func(what string, harm func(x *fixture), want ...string) {
		t.Run(what, func(t *testing.T) {
			x := newFixture(t)
			harm(x)
			var got []string
			for _, f := range x.findings().Findings {
				if !strings.HasPrefix(f.Message, "no clean stop") {
					got = append(got, f.String())
				}
			}
			for i, text := range want {
				if i >= len(got) || !strings.Contains(got[i], text) {
					t.Fatalf("got %q, want %q", got, want)
				}
			}
			if len(got) != len(want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	meta := func(text string) func(*fixture) {
		return func(x *fixture) { x.Put("../meta.properties", []byte(text)) }
	}
	const id = "directory.id=HljrPb6_GRUlUH5j6oJ3uA\n"
	f("meta missing", func(x *fixture) { x.Remove("../meta.properties") }, "damage: /data/meta.properties: missing")
	f("meta missing, no epochs", func(x *fixture) {
		x.Remove("../meta.properties")
		x.Remove(checkpoint.LeaderEpochs)
	}, "note: /data/meta.properties: missing", "damage: /data/orders-0/leader-epoch-checkpoint: missing")
	f("meta empty", meta(""), "damage: /data/meta.properties: byte 0: cut off")
	f("meta zeros", meta("\x00\x00\x00\n"), "damage: /data/meta.properties: neither", "note: /data/meta.properties: key")
	f("cluster.id cut", meta(id+"version=1\nnode.id=1\ncluster.id=Z29sZGVuLWxv"), "damage: /data/meta.properties: byte 79: cut off")
	f("cluster.id cut, line ended", meta(id+"version=1\nnode.id=1\ncluster.id=Z29sZGVuLWxv\n"), "note: /data/meta.properties: cluster.id Z29sZGVuLWxv is not one")
	f("cluster.id last letter", meta(id+"version=1\nnode.id=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMR\n"), "note: /data/meta.properties: cluster.id")
	f("a key", meta("directopy.id=HljrPb6_GRUlUH5j6oJ3uA\nversion=1\nnode.id=1\ncluster.id=Z29sZGVuLWxvZy1kaXJzMQ\n"), `note: /data/meta.properties: key "directopy.id" is none`)
	f("log start of an older time, after a kill", func(x *fixture) {
		x.Put(checkpoint.LeaderEpochs, []byte("0\n1\n3 20\n"))
		x.Remove("../.kafka_cleanshutdown")
	}, "note: /data/log-start-offset-checkpoint (offset 0): orders-0 has batches from 0 on, its leader epochs begin at 20")
	f("log start inside of a batch", func(x *fixture) {
		x.Put(checkpoint.LeaderEpochs, []byte("0\n2\n0 6\n3 20\n"))
		x.Offsets(checkpoint.LogStartOffsets, 5)
	}, "damage: /data/log-start-offset-checkpoint (offset 5): orders-0 has batches from 5 on, its leader epochs begin at 6")
	f("last batch of a compacted log moved", func(x *fixture) {
		x.Put("../cleaner-offset-checkpoint", []byte("0\n1\norders 0 20\n"))
		x.Change(offlinetest.Log20, func(b []byte) []byte { b[len(b)-85+5] = 1; return b })
		x.Put("00000000000000000020.index", nil)
		x.Remove("../.kafka_cleanshutdown")
	}, "damage: /data/orders-0/00000000000000000020.timeindex (offset 39): entry for offset 39: no batch has that offset")
	f("a log doubled", func(x *fixture) { x.Change(offlinetest.Log20, func(b []byte) []byte { return append(b, b...) }) }, slices.Repeat([]string{"00000000000000000020.log: byte"}, 10)...)
	f("ZooKeeper", meta("version=0\nbroker.id=1\n"))
	f("recovery points empty", func(x *fixture) { x.Put("../recovery-point-offset-checkpoint", nil) },
		"damage: /data/recovery-point-offset-checkpoint: empty", "note: /data/recovery-point-offset-checkpoint (offset 40): orders-0 is missing")
	f("log starts empty", func(x *fixture) { x.Put("../log-start-offset-checkpoint", nil) }, "damage: /data/log-start-offset-checkpoint: empty")
	f("log starts missing", func(x *fixture) { x.Remove("../log-start-offset-checkpoint") }, "note: /data/log-start-offset-checkpoint: missing")
	f("log starts empty after a kill", func(x *fixture) {
		x.Put("../log-start-offset-checkpoint", nil)
		x.Remove("../.kafka_cleanshutdown")
	}, "note: /data/log-start-offset-checkpoint: empty")
	f("cleaner's empty", func(x *fixture) { x.Put("../cleaner-offset-checkpoint", nil) })
	f("no recovery point", func(x *fixture) { x.Put("../recovery-point-offset-checkpoint", []byte("0\n0\n")) }, "note: /data/recovery-point-offset-checkpoint (offset 40): orders-0 is missing")
	f("no high watermark", func(x *fixture) { x.Put("../replication-offset-checkpoint", []byte("0\n0\n")) }, "note: /data/replication-offset-checkpoint (offset 40): orders-0 is missing")
	f("a checkpoint of others", func(x *fixture) {
		x.Put("../log-start-offset-checkpoint", []byte("0\n1\nelsewhere 3 7\n"))
	}, "note: /data/log-start-offset-checkpoint: 1 partitions are not here: elsewhere-3")
	f("first segment missing", func(x *fixture) {
		for _, kind := range []segment.Kind{segment.LogFile, segment.IndexFile, segment.TimeIndexFile} {
			x.Remove(segment.Name(0, kind, ""))
		}
	}, "damage: /data/orders-0/00000000000000000020.log (offset 0): the log begins at 20, the leader epochs at 0")
	f("index files of a new segment", func(x *fixture) {
		x.Segment(40, 44, 3)
		x.Remove("00000000000000000040.index")
		x.Remove("00000000000000000040.timeindex")
		x.Remove("../.kafka_cleanshutdown")
	}, "note: /data/orders-0/00000000000000000040.index: missing", "note: /data/orders-0/00000000000000000040.timeindex: missing")
	f("torn by a kill", func(x *fixture) {
		x.Change(offlinetest.Log20, func(b []byte) []byte { return append(b, b[:40]...) })
		x.Remove("../.kafka_cleanshutdown")
	}, "note: /data/orders-0/00000000000000000020.log: byte 850 (offset 40): batch of 85 bytes is torn")
	f("torn below the high watermark", func(x *fixture) {
		x.Change(offlinetest.Log20, func(b []byte) []byte { return b[:len(b)-40] })
		x.Offsets(checkpoint.RecoveryPoints, 20)
		x.Remove("../.kafka_cleanshutdown")
	}, "damage: /data/orders-0/00000000000000000020.log: byte 765 (offset 38): batch of 85 bytes is torn",
		"note: /data/replication-offset-checkpoint")
	f("a segment that nobody made, behind the end", func(x *fixture) {
		x.Put("00000000000000000050.log", nil)
		x.Put("../cleaner-offset-checkpoint", []byte("0\n0\n"))
	}, "00000000000000000020.log: byte 765 (offset 50): the log ends at 50, the recovery point", "note: /data/orders-0/00000000000000000050.log (offset 50): empty, and without index files",
		"00000000000000000050.log: byte 0 (offset 40): offsets 40-49 are missing", "recovery-point-offset-checkpoint")
	f("a segment that nobody made, in the middle", func(x *fixture) {
		x.Remove("../.kafka_cleanshutdown")
		x.Segment(40, 44, 3)
		x.Put("00000000000000000030.log", nil)
	}, "note: /data/orders-0/00000000000000000030.log (offset 30): empty", "damage: /data/orders-0/00000000000000000030.log: byte 0 (offset 30): segment begins below 40")
	f("the same of a compacted log", func(x *fixture) {
		x.Put("../cleaner-offset-checkpoint", []byte("0\n1\norders 0 20\n"))
		x.Put("00000000000000000050.log", nil)
		x.Remove("../.kafka_cleanshutdown")
	}, "note: /data/orders-0/00000000000000000050.log (offset 50): empty, and without")
}

// The directories of a broker are held against each other and against what its metadata log says.
func TestCheckDirectoriesOfABroker(t *testing.T) {
	first, second, bills := uuid.New(), uuid.New(), uuid.New()
	var orders uuid.UUID
	meta := func(x *fixture, dir string, node int32, cluster string, id uuid.UUID) {
		err := checkpoint.WriteMetaProperties(x.Mem, dir+"/meta.properties", checkpoint.MetaProperties{ClusterID: cluster, NodeID: node, DirectoryID: id}, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
	}
	const cluster, wrong = "Z29sZGVuLWxvZy1kaXJzMQ", "Z29sZGVuLWxvZy1kaXJzMg"
	offsets := func(x *fixture, path, topicName string, offset int64) {
		if err := checkpoint.WriteOffsets(x.Mem, path, map[topic.Partition]int64{{Topic: topicName}: offset}); err != nil {
			t.Fatal(err)
		}
	}
	f := func(what string, harm func(x *fixture), want ...string) {
		t.Run(what, func(t *testing.T) {
			x := newFixture(t)
			m, err := checkpoint.ReadPartitionMetadata(x.Mem, x.Path("partition.metadata"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{offlinetest.Log0, offlinetest.Log20, offlinetest.Index0, offlinetest.Times0, "00000000000000000020.index", "00000000000000000020.timeindex", checkpoint.LeaderEpochs} {
				offlinetest.MustWrite(t, x.Mem, "/other/bills-0/"+name, x.Get(name))
			}
			orders = m.TopicID
			offlinetest.MustWrite(t, x.Mem, "/other/bills-0/partition.metadata", []byte("version: 0\ntopic_id: "+bills.String()))
			offlinetest.MustWrite(t, x.Mem, "/other/.kafka_cleanshutdown", nil)
			for _, name := range []string{checkpoint.RecoveryPoints, checkpoint.HighWatermarks} {
				offsets(x, "/other/"+name, "bills", 40)
			}
			offsets(x, "/data/"+checkpoint.LogStartOffsets, "orders", 0)
			offsets(x, "/other/"+checkpoint.LogStartOffsets, "bills", 0)
			meta(x, "/data", 1, cluster, first)
			meta(x, "/other", 1, cluster, second)
			x.metadataLog("/other", &metadata.RegisterBrokerRecord{BrokerID: 1, LogDirs: []uuid.UUID{first, second}},
				&metadata.TopicRecord{Name: "orders", TopicID: m.TopicID}, partitionIn(m.TopicID, first, 3),
				&metadata.TopicRecord{Name: "bills", TopicID: bills}, partitionIn(bills, second, 3))
			harm(x)
			var got []string
			for _, f := range mustCheck(t, offlinetest.ReadOnly{FS: x.Mem}, "/data", "/other").Findings {
				got = append(got, f.String())
			}
			for i, text := range want {
				if i >= len(got) || !strings.Contains(got[i], text) {
					t.Fatalf("got %q, want %q", got, want)
				}
			}
			if len(got) != len(want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	f("nothing", func(*fixture) {})
	f("log starts swapped", func(x *fixture) {
		offsets(x, "/data/"+checkpoint.LogStartOffsets, "bills", 0)
		offsets(x, "/other/"+checkpoint.LogStartOffsets, "orders", 0)
	}, "note: /data/log-start-offset-checkpoint: 1 partitions are not here", "damage: /data/log-start-offset-checkpoint: 1 partitions lie in other directories: bills-0 in /other/bills-0",
		"note: /other/log-start-offset-checkpoint: 1 partitions are not here", "damage: /other/log-start-offset-checkpoint: 1 partitions lie in other directories: orders-0 in /data/orders-0")
	f("node.id", func(x *fixture) { meta(x, "/data", 3, cluster, first) },
		"damage: /data/meta.properties: node.id is 3, but the metadata log has directory.id")
	f("directory.id", func(x *fixture) { meta(x, "/data", 1, cluster, uuid.New()) }, "damage: /data/meta.properties: directory.id")
	f("cluster.id", func(x *fixture) { meta(x, "/data", 1, wrong, first) }, "note: /data: no metadata log", "damage: /data/meta.properties: cluster.id "+wrong)
	f("meta.properties swapped", func(x *fixture) {
		meta(x, "/data", 1, cluster, second)
		meta(x, "/other", 1, cluster, first)
	}, "note: /data: 1 partitions that the metadata log has in /other: orders-0", "note: /other: 1 partitions that the metadata log has in /data: bills-0")
	f("end of the metadata log missing", func(x *fixture) {
		x.metadataLog("/other", &metadata.RegisterBrokerRecord{BrokerID: 1, LogDirs: []uuid.UUID{first, second}},
			&metadata.TopicRecord{Name: "orders", TopicID: orders}, partitionIn(orders, first, 2),
			&metadata.TopicRecord{Name: "bills", TopicID: bills}, partitionIn(bills, second, 3))
	}, "damage: /data/orders-0/00000000000000000020.log: byte 765 (offset 38): leader epoch 3, the metadata log knows none above 2")
	f("quorum-state of an older epoch", func(x *fixture) {
		offlinetest.MustWrite(t, x.Mem, "/other/__cluster_metadata-0/quorum-state", []byte(`{"leaderId":1,"leaderEpoch":-1,"votedId":1,"data_version":0}`))
	}, "damage: /other/__cluster_metadata-0/quorum-state: data_version 0, leaderEpoch -1")
	f("quorum-state of a later epoch", func(x *fixture) {
		offlinetest.MustWrite(t, x.Mem, "/other/__cluster_metadata-0/quorum-state", []byte(`{"leaderId":1,"leaderEpoch":7,"votedId":1,"data_version":0}`))
	}, "note: /other/__cluster_metadata-0/quorum-state: node 1 leads in epoch 7, the log ends with 0")
	f("a directory missing", func(x *fixture) {
		if err := vfs.RemoveAll(x.Mem, offlinetest.FixtureDir); err != nil {
			t.Fatal(err)
		}
	}, "note: /data/log-start", "damage: /data/orders-0: missing", "note: /data/recovery-point", "note: /data/replication")
	f("metadata log missing", func(x *fixture) {
		if err := vfs.RemoveAll(x.Mem, "/other/"+metadataDir); err != nil {
			t.Fatal(err)
		}
	}, "note: /data: no metadata log here", "note: /other: no metadata log here")
}

// partitionIn is a partition of node 1 that has been there for a while.
func partitionIn(id, dir uuid.UUID, epoch int32) *metadata.PartitionRecord {
	p := metadata.NewPartitionRecord()
	p.TopicID, p.PartitionID, p.Leader, p.Replicas, p.ISR = id, 0, 1, []int32{1}, []int32{1}
	p.Directories, p.LeaderEpoch, p.PartitionEpoch = []uuid.UUID{dir}, epoch, 5
	return p
}

// metadataLog writes one of one batch.
func (x *fixture) metadataLog(dir string, records ...metadata.Record) {
	x.T.Helper()
	b := record.NewBuilder(record.BuilderOptions{})
	for i, r := range records {
		if err := b.Append(record.Record{Offset: int64(i), Value: metadata.Append(nil, r, metadata.LevelCurrent)}); err != nil {
			x.T.Fatal(err)
		}
	}
	offlinetest.MustWrite(x.T, x.Mem, dir+"/__cluster_metadata-0/"+offlinetest.Log0, b.Build())
	offlinetest.MustWrite(x.T, x.Mem, dir+"/__cluster_metadata-0/partition.metadata", []byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"))
	offlinetest.MustWrite(x.T, x.Mem, dir+"/__cluster_metadata-0/"+checkpoint.LeaderEpochs, []byte("0\n1\n0 0\n"))
}
