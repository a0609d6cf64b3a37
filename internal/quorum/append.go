package quorum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// StoreLog implements raft.LogStore.
func (l *metadataLog) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. What this node makes is made here, and once: offset and epoch
// are stamped into the Data of commands, and what raft leaves to its log gets its bytes. What another
// leader made is stored as it came. All of it is examined before anything is written; batches are
// written and synced one after the other: see the package's rule on torn tails.
func (l *metadataLog) StoreLogs(logs []*raft.Log) error {
	batches, err := l.batches(logs)
	if err != nil {
		return err
	}
	for _, batch := range batches {
		err := l.fail.get()
		if err == nil {
			err = l.write(batch)
		}
		if err != nil {
			l.fail.set(err)
			return err
		}
	}
	return nil
}

// batches returns the batches of entries. At fault is raft, if it gives an entry that is not the next.
func (l *metadataLog) batches(logs []*raft.Log) (batches []record.Batch, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := origin{l.mu.nextOffset, l.lastEpochLocked()}
	for i, log := range logs {
		if want := l.nextIndexLocked() + uint64(i); log.Index != want {
			err := fmt.Errorf("raft stores index %d, want %d", log.Index, want)
			l.fail.set(err)
			return nil, err
		}
		batch, err := receivedBatch(log, at)
		if err == nil && batch == nil {
			batch, err = l.makeLocked(log, at.offset)
		}
		if err != nil {
			return nil, err
		}
		batches = append(batches, batch)
		at = origin{batch.NextOffset(), batch.LeaderEpoch()}
	}
	return batches, nil
}

// makeLocked returns the batch of an entry of this node's own.
func (l *metadataLog) makeLocked(log *raft.Log, offset int64) (batch record.Batch, err error) {
	now := l.now().UnixMilli()
	switch log.Type {
	case raft.LogCommand:
		if batch = log.Data; uint64(batch.LeaderEpoch()) != log.Term {
			err = fmt.Errorf("%w: a proposal of epoch %d came to the log in epoch %d", ErrNotLeader, batch.LeaderEpoch(), log.Term)
		}
	case raft.LogBarrier:
		batch, err = noOp(now)
	case raft.LogNoop:
		batch, err = l.leaderChangeLocked(log).batch(int32(log.Term), now)
	case raft.LogConfiguration:
		var voters *metadata.VotersRecord
		voters, err = recordOf(raft.DecodeConfiguration(log.Data), l.mu.kraft.newest().voters, l.mu.joining)
		if err == nil {
			batch, err = controlBatch(int32(log.Term), now, controlRecord{record.ControlKRaftVoters, voters})
		}
	default:
		err = fmt.Errorf("entry of type %v has no place in the metadata log", log.Type)
	}
	if err != nil {
		return nil, err
	}
	batch.SetBaseOffset(offset)
	batch.SetLeaderEpoch(int32(log.Term))
	return batch, nil
}

// leaderChangeLocked is what this node says when it begins to lead.
func (l *metadataLog) leaderChangeLocked(log *raft.Log) leaderChange {
	c := leaderChange{leader: l.nodeID, index: log.Index, kraft: l.mu.kraft.newest()}
	c.voters = idsOf(c.kraft.configuration(l.static))
	c.granting = l.ballot.granted(log.Term, l.nodeID)
	if sole := l.mu.soleVoter; sole != nil {
		c.records = append(c.records, controlRecord{record.ControlKRaftVoters, sole})
	}
	return c
}

// write makes a batch durable, and an entry. Nobody else adds to the log meanwhile, or takes from its
// end.
func (l *metadataLog) write(batch record.Batch) error {
	s, err := l.writable(batch.BaseOffset())
	if err != nil {
		return err
	}
	if _, err := s.file.WriteAt(batch, s.size); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.noteControlLocked(batch); err != nil {
		return err
	}
	l.addLocked(s, batch, s.size)
	s.size += int64(batch.Size())
	l.mu.lost = 0
	return nil
}

// forgetData drops the bytes of the entries that load read, when they are applied. The control
// batches keep theirs: whether raft has passed those behind the last command nobody is told, and
// raft panics when it cannot read an entry.
func (l *metadataLog) forgetData() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.mu.entries {
		if e := &l.mu.entries[i]; !e.control {
			e.data = nil
		}
	}
}

// addLocked makes a batch that lies in the file an entry.
func (l *metadataLog) addLocked(s *logSegment, batch record.Batch, position int64) {
	if n := len(l.mu.epochs); n == 0 || l.mu.epochs[n-1].epoch != batch.LeaderEpoch() {
		l.mu.epochs = append(l.mu.epochs, snapshotID{batch.BaseOffset(), batch.LeaderEpoch()})
	}
	l.mu.entries = append(l.mu.entries, entry{
		segment: s, position: position, size: int32(batch.Size()), epoch: batch.LeaderEpoch(), nextOffset: batch.NextOffset(), control: batch.IsControl(),
	})
	l.mu.nextOffset = batch.NextOffset()
	l.newBytes.Add(int64(batch.Size()))
}

// writable returns the last segment. It begins one at the end of the log when the last is full or there
// is none.
func (l *metadataLog) writable(end int64) (*logSegment, error) {
	last := l.lastSegment()
	if last != nil && last.size < l.segmentBytes {
		return last, nil
	}
	next, err := l.createSegment(end)
	if vfs.FaultOf(err) == vfs.ProcessFault && last != nil {
		l.logger.Warn("the metadata log got no new segment, and goes on in the full one", "err", err)
		return last, nil // which has its descriptor
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.segments = append(l.mu.segments, next)
	return next, nil
}

func (l *metadataLog) lastSegment() *logSegment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.mu.segments); n > 0 {
		return l.mu.segments[n-1]
	}
	return nil
}

// createSegment makes the file of a segment at the end of the log.
func (l *metadataLog) createSegment(end int64) (*logSegment, error) {
	path := filepath.Join(l.dir, segmentName(end))
	file, err := l.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return nil, errors.Join(err, file.Close(), l.fs.Remove(path))
	}
	return &logSegment{base: end, file: file}, nil
}

// addSegmentLocked begins a segment at the end of the log.
func (l *metadataLog) addSegmentLocked() error {
	s, err := l.createSegment(l.mu.nextOffset)
	if err == nil {
		l.mu.segments = append(l.mu.segments, s)
	}
	return err
}
