package faultdir

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/golden"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/vfs"
)

// goldenSubjects are the log directories of Kafka: those of lone KRaft nodes as they are, the
// others with a metadata log that gregor made for them.
func goldenSubjects(t *testing.T) (list []*Subject) {
	for _, d := range golden.Dirs() {
		m := vfs.NewMem()
		golden.Unpack(t, m, "", d.Set)
		tree, err := ReadTree(m, d.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := tree.Dirs[path.Join(d.Name, metadataDir)]; !ok || d.Set == "kafka-4.4.0-three-nodes" {
			tree = adopt(t, tree, d)
		}
		s := &Subject{Name: d.String(), Dirs: []string{d.Name}, Tree: tree, Damaged: d.Set == "kafka-4.4.0-torn"}
		s.Older = func(name string) ([]byte, bool) { return shortened(tree, name) }
		list = append(list, variants(s)...)
	}
	return list
}

// variants are a subject as it is and, if it was stopped cleanly, without the markers of that.
func variants(s *Subject) []*Subject {
	copied := func(state string) *Subject {
		return &Subject{Name: s.Name + " " + state, Dirs: s.Dirs, Set: s.Set, Tree: s.Tree.Clone(), Damaged: s.Damaged, Older: s.Older}
	}
	killed := copied("killed")
	for name := range s.Tree.Files {
		if base := path.Base(name); base == checkpoint.CleanShutdown || base == string(CleanState) {
			delete(killed.Tree.Files, name)
		}
	}
	if len(killed.Tree.Files) == len(s.Tree.Files) {
		return []*Subject{killed}
	}
	return []*Subject{copied("clean"), killed}
}

// shortened is what a file may have been before: a .log file without its second half, an index or a
// checkpoint with fewer entries.
func shortened(t *Tree, name string) ([]byte, bool) {
	data := t.Files[name].Data
	switch kindOf(name) {
	case LogFile, MetadataLog:
		spans := spansOf(data, 0)
		if len(spans) < 2 {
			return nil, false
		}
		return data[:spans[len(spans)/2].from], true
	case OffsetIndex:
		return data[:len(data)/8/2*8], len(data) > 0
	case TimeIndex:
		return data[:len(data)/12/2*12], len(data) > 0
	case LeaderEpochs, RecoveryPoints, LogStarts, HighWatermarks, CleanerPoints:
		return fewer(data)
	}
	return nil, false
}

// fewer is a checkpoint with its first entries only.
func fewer(data []byte) ([]byte, bool) {
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) < 3 {
		return nil, false
	}
	keep := lines[2 : 2+(len(lines)-2)/2]
	return fmt.Appendf(nil, "0\n%d\n%s\n", len(keep), strings.Join(keep, "\n")), true
}

// adopt puts the partitions of a directory into one that gregor has made, as if they were its own.
func adopt(t *testing.T, kafka *Tree, d golden.Dir) *Tree {
	t.Helper()
	counts := map[string]int32{}
	for dir := range kafka.Dirs {
		if p, err := topic.ParsePartition(path.Base(dir)); err == nil && topic.ValidateName(p.Topic) == nil && p.Topic != topic.ClusterMetadata {
			counts[p.Topic] = max(counts[p.Topic], p.Partition+1)
		}
	}
	tree := created(t, []string{d.Name}, counts, golden.Topics(t, d.Set), restarts)
	delete(tree.Files, path.Join(d.Name, string(CleanState)))
	for name, file := range kafka.Files {
		dir := path.Base(path.Dir(name))
		switch kind := kindOf(name); {
		case path.Dir(name) == d.Name:
			if kind == MetaProperties || kind == Bootstrap || kind == OtherFile {
				continue
			}
		case dir == metadataDir || kind == PartitionMetadata:
			continue
		}
		tree.Files[name] = file
	}
	for dir := range kafka.Dirs {
		if dir == d.Name || path.Base(dir) == metadataDir {
			continue
		}
		if _, ok := tree.Dirs[dir]; !ok {
			t.Logf("%v: %s has no topic", d, dir)
		}
		for name := range tree.Files { // what gregor had made
			if _, ok := kafka.Files[name]; !ok && path.Dir(name) == dir && path.Base(name) != checkpoint.PartitionMetadataFile {
				delete(tree.Files, name)
			}
		}
	}
	if _, ok := kafka.Files[path.Join(d.Name, checkpoint.RecoveryPoints)]; !ok { // partitions only
		delete(tree.Files, path.Join(d.Name, checkpoint.CleanShutdown))
		return served(t, tree, d.Name)
	}
	return tree
}

// restarts bring the leader epochs of gregor's metadata above those in Kafka's logs.
const restarts = 8

// served is a directory after a broker has been started on it and stopped.
func served(t *testing.T, tree *Tree, dirs ...string) *Tree {
	t.Helper()
	fs, err := tree.Mem()
	if err != nil {
		t.Fatal(err)
	}
	b, err := start(fs, dirs, nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.stop(limit); err != nil {
		t.Fatal(err)
	}
	if tree, err = b.tree(); err != nil {
		t.Fatal(err)
	}
	return tree
}

// created are directories in which gregor has made topics.
func created(t *testing.T, dirs []string, counts map[string]int32, topics map[string]golden.Topic, restarts int) *Tree {
	t.Helper()
	fs := vfs.NewMem()
	b, err := start(fs, dirs, nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.connect(limit)
	if err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 10_000
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, counts[name], 1
		for key, value := range topics[name].Configs {
			if slices.Contains([]string{"segment.bytes", "internal.segment.bytes", "message.format.version"}, key) {
				continue
			}
			rt.Configs = append(rt.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: &value})
		}
		req.Topics = append(req.Topics, rt)
	}
	resp, err := ask[*kmsg.CreateTopicsResponse](c, 7, req)
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range resp.Topics {
		if rt.ErrorCode != 0 {
			t.Fatalf("%s: %s %v", rt.Topic, codeName(rt.ErrorCode), cmp.Or(rt.ErrorMessage, new(string)))
		}
	}
	c.close()
	for range restarts {
		if err := b.stop(limit); err != nil {
			t.Fatal(err)
		}
		if b, err = start(fs, dirs, nil, limit); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.stop(limit); err != nil {
		t.Fatal(err)
	}
	tree, err := b.tree()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
