package faultdir

import (
	"bytes"
	"encoding/binary"
	"path"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A Scope is what a fault may cost: what a broker that does the best that can be done cannot give
// any more. All else has to be as it was.
type Scope struct {
	Kind        FileKind
	Touched     map[topic.Partition]bool      // a .log file of theirs is touched
	Lost        map[topic.Partition]stretches // offsets whose records may be gone
	Starts      map[topic.Partition]bool      // nothing else knows their log start
	Epochs      map[topic.Partition]bool      // their leader epochs are touched
	OtherEpochs map[topic.Partition]bool      // and can be read, but are other numbers
	Proven      map[topic.Partition]int64     // the log went at least up to there
	Longer      map[topic.Partition]bool      // something says that the log went further than it did
	Foreign     map[topic.Partition]bool      // it has a whole .log file of another: nothing in it says whose it is
	Gaps        map[topic.Partition]bool      // an index says that an empty segment had records
	Returned    map[topic.Partition]bool      // it has records again that compaction has removed
	Refusal     bool                          // a start may be refused
	Apart       map[topic.Partition]bool      // it may be left alone: nobody knows whether files or directories changed places
	Silent      bool                          // nothing that is left contradicts it
}

// scopeOf tells what a fault may cost. before and after are the trees without and with it.
func scopeOf(f Fault, before, after *Tree) *Scope {
	s := &Scope{Kind: kindOfPath(f.Path, before), Touched: map[topic.Partition]bool{}, Lost: map[topic.Partition]stretches{}, Starts: map[topic.Partition]bool{}, Epochs: map[topic.Partition]bool{}, OtherEpochs: map[topic.Partition]bool{}, Apart: map[topic.Partition]bool{}, Longer: map[topic.Partition]bool{}, Foreign: map[topic.Partition]bool{}, Gaps: map[topic.Partition]bool{}, Returned: map[topic.Partition]bool{}}
	s.Refusal = s.Kind.identity()
	s.Proven = proofs(after)
	was := proofs(before)
	for p, end := range s.Proven {
		s.Longer[p] = end > was[p]
	}
	s.Silent = silent(f, before, after)
	switch {
	case f.Kind == Missing && s.Kind == PartitionDir:
		p, _ := partitionOf(f.Path)
		s.lose(p, stretch{0, 1 << 62})
	case f.Kind == Missing && s.Kind == MetadataDir:
	case s.Kind == MetaProperties:
		s.Silent = otherCluster(before.Files[f.Path].Data, after.Files[f.Path].Data)
		for dir := range before.Dirs { // one directory of several may go offline
			if p, ok := partitionOf(dir); ok && path.Dir(dir) == path.Dir(f.Path) {
				s.Apart[p] = true
			}
		}
	case s.Kind == LogStarts:
		s.Silent = readable(after.Files[f.Path].Data)
		s.starts(before.Files[f.Path].Data, after.Files[f.Path].Data)
		if f.Kind == Swapped {
			s.starts(before.Files[f.Other].Data, after.Files[f.Other].Data)
		}
	case s.Kind == PartitionMetadata && f.Kind == Swapped:
		p, _ := partitionOf(f.Path)
		q, _ := partitionOf(f.Other)
		s.Apart[p], s.Apart[q] = p.Partition == q.Partition, p.Partition == q.Partition
	case s.Kind == LeaderEpochs:
		s.Silent = f.Kind != Swapped && readable(after.Files[f.Path].Data) && !contradicted(f.Path, after)
		s.epochs(f.Path, after)
		s.epochs(f.Other, after)
	case s.Kind == OffsetIndex || s.Kind == TimeIndex:
		s.gap(f.Path, after)
		s.gap(f.Other, after)
	default:
		s.file(f.Path, f.Kind, before, after)
		if p, ok := partitionOf(f.Path); ok && f.Kind == Older && s.Kind == LogFile {
			s.Returned[p] = true
		}
		if f.Kind == Swapped {
			s.file(f.Other, f.Kind, before, after)
			if p, q := s.partitions(f); p != q && s.Kind == LogFile {
				s.Foreign[p], s.Foreign[q] = true, true
				s.Silent = !indexed(f.Path, after) && !indexed(f.Other, after)
			}
		}
	}
	return s
}

func kindOfPath(name string, t *Tree) FileKind {
	if _, ok := t.Dirs[name]; !ok {
		return kindOf(name)
	}
	if path.Base(name) == metadataDir {
		return MetadataDir
	}
	return PartitionDir
}

func (s *Scope) lose(p topic.Partition, l stretch) {
	s.Touched[p] = true
	s.Lost[p] = append(s.Lost[p], l)
}

// file adds what a changed .log file may cost: the batches that are not in it as they were.
func (s *Scope) file(name string, kind Kind, before, after *Tree) {
	p, ok := partitionOf(name)
	if !ok || kindOf(name) != LogFile {
		return
	}
	s.Touched[p] = true
	old, now := before.Files[name].Data, after.Files[name].Data
	whole := kind == Missing || kind == Swapped
	s.Proven[p] = max(s.Proven[p], indexedEnd(after, name))
	for _, b := range spansOf(old, max(offsetIn(name), 0)) {
		if whole || b.to > int64(len(now)) || !bytes.Equal(old[b.from:b.to], now[b.from:b.to]) {
			s.lose(p, stretch{b.base, b.next})
		}
	}
	if good := spansOf(old, 0); len(good) == 0 || good[len(good)-1].to < int64(len(old)) {
		s.lose(p, stretch{max(offsetIn(name), 0), 1 << 62}) // it was damaged before
	}
}

// contradicted reports whether a batch has another leader epoch than leader-epoch-checkpoint says.
func contradicted(name string, t *Tree) bool {
	var starts [][2]int64
	for line := range strings.Lines(string(t.Files[name].Data)) {
		if words := strings.Fields(line); len(words) == 2 {
			starts = append(starts, [2]int64{number(words[0]), number(words[1])})
		}
	}
	for file, f := range t.Files {
		if path.Dir(file) != path.Dir(name) || kindOf(file) != LogFile {
			continue
		}
		for _, b := range spansOf(f.Data, offsetIn(file)) {
			epoch := int64(-1)
			for _, s := range starts {
				if s[1] <= b.batch.LastOffset() {
					epoch = s[0]
				}
			}
			if b.batch.LeaderEpoch() >= 0 && int64(b.batch.LeaderEpoch()) != epoch {
				return true
			}
		}
	}
	return false
}

// otherCluster reports whether meta.properties is as before but for the value of its cluster.id.
func otherCluster(before, after []byte) bool {
	was, is := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	if len(was) != len(is) {
		return false
	}
	for i := range was {
		if was[i] != is[i] && !(len(was[i]) == len(is[i]) && strings.HasPrefix(was[i], "cluster.id=") && strings.HasPrefix(is[i], "cluster.id=")) {
			return false
		}
	}
	return true
}

// silent reports whether a .log file that was cut, or is older, still goes with all else: it ends behind a
// batch, another segment follows, no index leads beyond its end, the log had gaps before, and no clean stop of
// gregor has noted its size.
func silent(f Fault, before, after *Tree) bool {
	data := after.Files[f.Path].Data
	if kindOf(f.Path) != LogFile || f.Kind != Cut && f.Kind != Older && f.Kind != Empty || sized(f.Path, after) {
		return false
	}
	spans := spansOf(data, 0)
	end, next := int64(0), offsetIn(f.Path)
	if len(spans) > 0 {
		end, next = spans[len(spans)-1].to, spans[len(spans)-1].next
	}
	if end != int64(len(data)) || !bytes.HasPrefix(before.Files[f.Path].Data, data) {
		return false
	}
	p, _ := partitionOf(f.Path)
	gaps, last := strings.HasPrefix(p.Topic, "c-") || strings.Contains(p.Topic, "compact"), true // as the topics of golden directories are named
	for name, file := range before.Files {
		if path.Dir(name) != path.Dir(f.Path) || kindOf(name) != LogFile {
			continue
		}
		last = last && offsetIn(name) <= offsetIn(f.Path)
		next := offsetIn(name)
		for _, b := range spansOf(file.Data, next) {
			gaps = gaps || b.batch.BaseOffset() > next && b.batch.Magic() == 2 || b.batch.Magic() < 2 && b.next > next+1 && b.batch.Codec() == record.None
			next = b.next
		}
	}
	index := after.Files[strings.TrimSuffix(f.Path, string(LogFile))+string(OffsetIndex)].Data
	for at := 0; at+8 <= len(index); at += 8 {
		if int64(binary.BigEndian.Uint32(index[at+4:])) >= int64(len(data)) {
			return false
		}
	}
	times := after.Files[strings.TrimSuffix(f.Path, string(LogFile))+string(TimeIndex)].Data
	for at := 0; at+12 <= len(times); at += 12 {
		if offsetIn(f.Path)+int64(binary.BigEndian.Uint32(times[at+8:])) >= next {
			return false
		}
	}
	if last {
		return proofs(after)[p] <= next
	}
	return gaps
}

// sized reports whether the log directory of a file has what gregor notes of its files at a clean stop.
func sized(name string, t *Tree) bool {
	dir := path.Dir(path.Dir(name))
	_, marker := t.Files[path.Join(dir, string(CleanShutdown))]
	_, state := t.Files[path.Join(dir, string(CleanState))]
	return marker && state
}

func (s *Scope) partitions(f Fault) (p, q topic.Partition) {
	p, _ = partitionOf(f.Path)
	q, _ = partitionOf(f.Other)
	return p, q
}

// indexed reports whether a .log file has an index with entries.
func indexed(name string, t *Tree) bool {
	for _, kind := range []FileKind{OffsetIndex, TimeIndex} {
		if strings.Trim(string(t.Files[strings.TrimSuffix(name, string(LogFile))+string(kind)].Data), "\x00") != "" {
			return true
		}
	}
	return false
}

// gap adds a partition that has an index with entries for a .log file without batches.
func (s *Scope) gap(name string, after *Tree) {
	p, ok := partitionOf(name)
	if ok && len(after.Files[name].Data) > 0 && len(after.Files[strings.TrimSuffix(name, path.Ext(name))+string(LogFile)].Data) == 0 {
		s.Gaps[p] = true
	}
}

// epochs adds a partition whose leader epochs are not what they were.
func (s *Scope) epochs(name string, after *Tree) {
	if p, ok := partitionOf(name); ok {
		s.Epochs[p], s.OtherEpochs[p] = true, readable(after.Files[name].Data)
	}
}

// starts adds the partitions whose lines in a log start checkpoint are not what they were.
func (s *Scope) starts(before, after []byte) {
	left, listed := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(after)) {
		if words := strings.Fields(line); len(words) == 3 {
			name := words[0] + "-" + words[1]
			if p, err := topic.ParsePartition(name); err == nil && listed[name] {
				s.Starts[p] = true // listed twice
			}
			listed[name] = true
		}
		left[strings.TrimSpace(line)] = strings.HasSuffix(line, "\n") // else its number may be cut
	}
	for line := range strings.Lines(string(before)) {
		words := strings.Fields(line)
		if len(words) != 3 || left[strings.TrimSpace(line)] {
			continue
		}
		if p, err := topic.ParsePartition(words[0] + "-" + words[1]); err == nil {
			s.Starts[p] = true
		}
	}
}

// readable reports whether a checkpoint has the lines that it announces.
func readable(data []byte) bool {
	text, whole := strings.CutSuffix(string(data), "\n")
	lines := strings.Split(text, "\n")
	return whole && len(lines) >= 2 && lines[0] == "0" && lines[1] == strconv.Itoa(len(lines)-2)
}
