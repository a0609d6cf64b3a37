package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// Evidence is what the files of a metadata log say of how far it once reached and of who decides
// in it, as Read found them.
type Evidence struct {
	Dir   string // __cluster_metadata-0
	Empty bool   // no batch and no snapshot of one is there
	End   int64  // where the log ends; what is torn is not counted
	Torn  int64  // bytes behind the end that are no whole batch

	Proofs []Proof // of files that know more than the log has
	Claims []Claim
}

// A Proof is a file that can only be there, or say what it says, if the log reached an offset.
type Proof struct {
	Path string
	Says string
	End  int64
}

// A Claim is what one file says of the quorum.
type Claim struct {
	Path   string
	Says   string  // what is quoted: the name of a field or record, with where it is
	Voters []int32 // nil: not said
	Leader int32   // -1: not said
}

// Evidence returns what Read found.
func (q *Quorum) Evidence() Evidence { return q.evidence }

// Dir returns the directory of the metadata log within a log directory, and whether one is there: a
// segment with something in it, or a snapshot.
func Dir(fsys vfs.FS, dir string) (path string, found bool) {
	path = logDir(dir)
	list, err := fsys.ReadDir(path)
	if err != nil {
		return path, false
	}
	for _, e := range list {
		if id, ok := parseCheckpoint(e.Name()); ok && id != bootstrapID {
			return path, true
		}
		if _, ok := parseSegment(e.Name()); !ok {
			continue
		}
		if info, err := e.Info(); err == nil && info.Size() > 0 {
			return path, true
		}
	}
	return path, false
}

// gather makes the Evidence of what load has read, and of the files beside it.
func (q *Quorum) gather() (Evidence, error) {
	l := &q.log.mu
	e := Evidence{Dir: q.dir, Empty: len(l.entries) == 0 && l.fileEnd == 0 && q.mu.snapshot.id == bootstrapID, End: l.fileEnd}
	if l.torn != nil {
		e.Torn = l.torn.size - l.torn.segment.size
	}
	e.Claims = q.claims()
	proofs, err := q.proofs()
	for _, p := range proofs {
		if p.End > e.End {
			e.Proofs = append(e.Proofs, p)
		}
	}
	return e, err
}

// proofs lists what the files beside the log prove. They hold after every crash: a snapshot is
// taken of what is committed and has its name when it is durable, a producer snapshot is written
// when the log before it is, and an epoch is entered where the log ends.
func (q *Quorum) proofs() (list []Proof, err error) {
	entries, err := q.opts.FS.ReadDir(q.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		path := filepath.Join(q.dir, e.Name())
		if id, ok := parseCheckpoint(e.Name()); ok {
			list = append(list, Proof{path, fmt.Sprintf("a snapshot that ends at offset %d", id.endOffset), id.endOffset})
		}
		if end, ok := checkpoint.ParseProducersName(e.Name()); ok {
			list = append(list, Proof{path, fmt.Sprintf("written when the log ended at offset %d", end), end})
		}
	}
	path := filepath.Join(q.dir, checkpoint.LeaderEpochs)
	epochs, epochsErr := checkpoint.ReadEpochs(q.opts.FS, path)
	if !checkpoint.Whole(epochsErr) { // it is made anew, and proves nothing
		epochs = nil
	}
	for _, e := range epochs {
		if e.Epoch > q.log.mu.fileEpoch { // of the others the log itself knows better
			list = append(list, Proof{path, fmt.Sprintf("leader epoch %d began at offset %d", e.Epoch, e.StartOffset), e.StartOffset})
		}
	}
	return list, err
}

// claims lists what the log, the newest snapshot and quorum-state say of voters and leader. What the
// log says, whose batches have checksums, goes before a quorum-state of the same epoch.
func (q *Quorum) claims() (list []Claim) {
	l := &q.log.mu
	kraft := l.kraft.newest()
	if kraft.voters != nil {
		path, says := q.snapshots.path(q.mu.snapshot.id), "KRAFT_VOTERS"
		if kraft.votersOffset >= 0 {
			path, says = q.dir, fmt.Sprintf("KRAFT_VOTERS at offset %d", kraft.votersOffset)
		}
		list = append(list, votersClaim(path, says, kraft.voters))
	}
	led := l.leader.offset >= 0
	if led {
		list = append(list, Claim{q.dir, fmt.Sprintf("LeaderChange of epoch %d", l.leader.epoch), l.leader.voters, l.leader.id})
	}
	if !led && kraft.voters == nil {
		list = append(list, q.formattedClaims()...)
	}
	if c := q.state.claim(); q.state.found.LeaderEpoch > l.leader.epoch || !led {
		list = append(list, c)
	}
	return list
}

// formattedClaims are those of a storage tool, for a log that has not begun.
func (q *Quorum) formattedClaims() []Claim {
	path := q.snapshots.path(bootstrapID)
	c, _, err := q.readCheckpoint(path)
	if err != nil || c.voters == nil { // bootstrap tells
		return nil
	}
	return []Claim{votersClaim(path, "KRAFT_VOTERS", c.voters)}
}

func votersClaim(path, says string, r *metadata.VotersRecord) Claim {
	c := Claim{Path: path, Says: says, Voters: []int32{}, Leader: nobody}
	for _, v := range r.Voters {
		c.Voters = append(c.Voters, v.VoterID)
	}
	return c
}

// claim is what the file says, as it was found.
func (s *quorumState) claim() Claim {
	c := Claim{Path: s.path, Says: fmt.Sprintf("epoch %d", s.found.LeaderEpoch), Leader: s.found.LeaderID}
	for _, v := range s.found.CurrentVoters {
		c.Voters = append(c.Voters, v.VoterID)
	}
	return c
}

// RemovedTopics returns which of the topics are removed by a record in the log.
func (q *Quorum) RemovedTopics(ids map[uuid.UUID]bool) (map[uuid.UUID]bool, error) {
	removed := make(map[uuid.UUID]bool)
	if len(ids) == 0 {
		return removed, nil
	}
	l := &q.log.mu
	l.Lock()
	defer l.Unlock()
	for _, s := range l.segments {
		bad, err := walk(s.file, s.size, func(batch record.Batch) error {
			if batch.IsControl() {
				return nil
			}
			records, err := decodeData(batch)
			for _, r := range records {
				if r, ok := r.(*metadata.RemoveTopicRecord); ok && ids[r.TopicID] {
					removed[r.TopicID] = true
				}
			}
			return err
		})
		if err := errors.Join(bad, err); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(q.dir, segmentName(s.base)), err)
		}
	}
	return removed, nil
}

// AcceptLoss takes the log for whole although a Proof says otherwise, and takes the proofs away so
// that later starts do as well: what held producers holds none, a snapshot that cannot be read is
// kept under another name, and Start writes the epochs. Call it before Start.
func (q *Quorum) AcceptLoss() error {
	for _, p := range q.evidence.Proofs {
		name := filepath.Base(p.Path)
		var err error
		switch _, isEnd := checkpoint.ParseProducersName(name); {
		case isEnd:
			err = q.opts.FS.Remove(p.Path)
		case strings.HasSuffix(name, checkpoint.SnapshotSuffix) && p.End > q.mu.snapshot.id.endOffset:
			err = q.opts.FS.Rename(p.Path, p.Path+damagedSuffix)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TakeOver makes this node the only voter, whoever voted before. directory is the id of its log
// directory. Call it before Start.
func (q *Quorum) TakeOver(directory uuid.UUID) {
	if c, _, err := q.readCheckpoint(q.snapshots.path(bootstrapID)); err == nil && q.evidence.Empty {
		q.log.noteCheckpoint(c)
	}
	voters := q.log.voters()
	if voters == nil {
		return // voters from the configuration: Start writes quorum-state
	}
	sole := &metadata.VotersRecord{Voters: []metadata.VotersRecordVoter{{
		VoterID: q.opts.NodeID, VoterDirectoryID: directory, KRaftVersionFeature: metadata.KRaftVersionFeature{MaxSupportedVersion: 1},
	}}}
	for _, v := range voters.Voters {
		if v.VoterID == q.opts.NodeID {
			sole.Voters[0] = v
		}
	}
	q.mu.snapshot.kraft.voters = sole
	q.log.appoint(sole)
}

// noProducers is a producer snapshot without entries: version 1, CRC-32C, count 0.
var noProducers = []byte{0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0}

// writeEnd notes where the log ended at a clean stop, in the name of a producer snapshot as Kafka
// leaves one. A later start that finds less knows that something is missing.
func (q *Quorum) writeEnd() {
	end := segment.Name(q.log.NextOffset(), "", checkpoint.ProducersSuffix)
	list, err := q.opts.FS.ReadDir(q.dir)
	for _, e := range list {
		if _, ok := checkpoint.ParseProducersName(e.Name()); ok && e.Name() != end {
			err = errors.Join(err, q.opts.FS.Remove(filepath.Join(q.dir, e.Name())))
		}
	}
	if err == nil {
		err = vfs.WriteFileAtomic(q.opts.FS, filepath.Join(q.dir, end), noProducers)
	}
	if err != nil {
		q.opts.Logger.Warn("cannot note the end of the metadata log", "file", end, "err", err)
	}
}
