package logdir

import (
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// Names in a log directory, beside those of package checkpoint.
const (
	metadataLogName = topic.ClusterMetadata + "-0" // package quorum keeps it
	remoteIndexName = "remote-log-index-cache"     // Kafka's cache for tiered storage

	nameLengthMax = 255
)

// A dirKind says what a directory in a log directory is.
type dirKind int

const (
	liveDir    dirKind = iota // topic-partition
	deletedDir                // topic-partition.id-delete
	strayDir
	futureDir
	otherDir   // another part of gregor or Kafka keeps it
	foreignDir // nothing of ours
)

var dirSuffixes = []struct {
	suffix string
	kind   dirKind
}{{checkpoint.DeleteDirSuffix, deletedDir}, {checkpoint.StrayDirSuffix, strayDir}, {checkpoint.FutureDirSuffix, futureDir}}

// classify tells from a directory's name what it is. The partition is that of a live or
// future one; deleted and stray names may have lost the end of their topic.
func classify(name string) (dirKind, topic.Partition) {
	if name == metadataLogName || name == remoteIndexName {
		return otherDir, topic.Partition{}
	}
	kind, text := liveDir, name
	for _, s := range dirSuffixes {
		rest, ok := strings.CutSuffix(name, s.suffix)
		if !ok {
			continue
		}
		dot := strings.LastIndexByte(rest, '.')
		if dot < 0 || dot == len(rest)-1 {
			return foreignDir, topic.Partition{}
		}
		kind, text = s.kind, rest[:dot]
	}
	p, err := topic.ParsePartition(text)
	if err != nil || topic.ValidateName(p.Topic) != nil {
		return foreignDir, topic.Partition{}
	}
	return kind, p
}

// futureName is the name of the directory that p moves to. It is not cut: a name that is too
// long is refused.
func futureName(source io.Reader, p topic.Partition) (string, error) {
	var id [16]byte
	random.Fill(source, id[:])
	name := p.String() + "." + hex.EncodeToString(id[:]) + checkpoint.FutureDirSuffix
	if len(name) > nameLengthMax {
		return "", fmt.Errorf("%v: %w: %d bytes", p, ErrNameTooLong, len(name))
	}
	return name, nil
}

// asideName is the name under which the directory of p is put aside. The topic is cut so
// that the name fits into nameLengthMax.
func asideName(source io.Reader, p topic.Partition, suffix string) string {
	var id [16]byte
	random.Fill(source, id[:])
	end := "-" + strconv.Itoa(int(p.Partition)) + "." + hex.EncodeToString(id[:]) + suffix
	return p.Topic[:min(len(p.Topic), nameLengthMax-len(end))] + end
}

// isAsideOf reports whether a directory that was put aside was that of p. Of a topic that was cut it
// may have been another one's.
func isAsideOf(name string, p topic.Partition) bool {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return false
	}
	text, ok := strings.CutSuffix(name[:dot], "-"+strconv.Itoa(int(p.Partition)))
	return ok && (text == p.Topic || len(name) >= nameLengthMax && strings.HasPrefix(p.Topic, text))
}

func (d *dir) file(name string) string { return filepath.Join(d.path, name) }

func (d *dir) metaProperties() string { return d.file(checkpoint.MetaPropertyFile) }
func (d *dir) cleanShutdown() string  { return d.file(checkpoint.CleanShutdown) }
