package faultdir

import (
	"encoding/binary"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// proofs tells for each partition up to where what lies in a tree proves that its log went: recovery
// points and high watermarks, the names of segments and producer snapshots, leader epochs, and the
// batches that are good. What is above was perhaps never acknowledged, as far as anybody can know.
func proofs(t *Tree) map[topic.Partition]int64 {
	ends := map[topic.Partition]int64{}
	prove := func(p topic.Partition, end int64) { ends[p] = max(ends[p], end) }
	for name, file := range t.Files {
		kind := kindOf(name)
		switch kind {
		case RecoveryPoints, HighWatermarks, LogStarts:
			for p, offset := range entries(file.Data) {
				prove(p, offset)
			}
			continue
		}
		p, ok := partitionOf(name)
		if !ok {
			continue
		}
		switch kind {
		case LogFile:
			prove(p, offsetIn(name))
			if spans := spansOf(file.Data, 0); len(spans) > 0 && spans[0].batch.LastOffset() >= offsetIn(name) && spans[len(spans)-1].next <= nextBase(t, name) {
				prove(p, spans[len(spans)-1].next)
			}
		case ProducerSnapshot, OffsetIndex, TimeIndex, TxnIndex:
			prove(p, offsetIn(name))
		case LeaderEpochs:
			for line := range strings.Lines(string(file.Data)) {
				if words := strings.Fields(line); readable(file.Data) && len(words) == 2 {
					prove(p, number(words[1]))
				}
			}
		}
	}
	return ends
}

// indexedEnd is the offset behind the last batch that an index of a .log file knows of, 0 where that is no
// proof: the stop was not a clean one, or another segment follows. An entry that leads behind the file counts
// if another one leads to its batch.
func indexedEnd(t *Tree, name string) int64 {
	_, clean := t.Files[path.Join(path.Dir(path.Dir(name)), checkpoint.CleanShutdown)]
	spans := spansOf(t.Files[name].Data, offsetIn(name))
	if !clean || len(spans) == 0 || nextBase(t, name) != math.MaxInt64 {
		return 0
	}
	last, index := spans[len(spans)-1], t.Files[strings.TrimSuffix(name, string(LogFile))+string(OffsetIndex)].Data
	end, fits := int64(0), false
	for at := 0; at+8 <= len(index); at += 8 {
		next := offsetIn(name) + int64(binary.BigEndian.Uint32(index[at:])) + 1
		position := int64(binary.BigEndian.Uint32(index[at+4:]))
		fits = fits || slices.ContainsFunc(spans, func(s span) bool { return s.from == position && position > 0 })
		if position >= last.to && next > last.next && fits {
			end = next
		}
	}
	return end
}

// nextBase is the offset in the name of the segment behind one.
func nextBase(t *Tree, name string) int64 {
	next := int64(math.MaxInt64)
	for other := range t.Files {
		if path.Dir(other) == path.Dir(name) && kindOf(other) == LogFile && offsetIn(other) > offsetIn(name) {
			next = min(next, offsetIn(other))
		}
	}
	return next
}

// entries reads a checkpoint of offsets, if it can be read.
func entries(data []byte) map[topic.Partition]int64 {
	list := map[topic.Partition]int64{}
	if !readable(data) {
		return list
	}
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); len(words) == 3 {
			if p, err := topic.ParsePartition(path.Base(words[0]) + "-" + words[1]); err == nil {
				list[p] = number(words[2])
			}
		}
	}
	return list
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
