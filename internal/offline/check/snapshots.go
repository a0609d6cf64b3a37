package check

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// checkSnapshots looks at the other files of a partition.
func (p *partition) checkSnapshots(ctx context.Context) error {
	names := make([]string, 0, len(p.kinds))
	for name := range p.kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		path := filepath.Join(p.dir, name)
		var err error
		switch p.kinds[name] {
		case files.KRaftSnapshot:
			err = p.checkKRaftSnapshot(ctx, path)
		case files.QuorumState:
			err = p.checkQuorumState(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkKRaftSnapshot walks over a .checkpoint file: batches from offset 0 on, between a
// header and a footer.
func (p *partition) checkKRaftSnapshot(ctx context.Context, path string) (err error) {
	scan, err := files.OpenScanner(p.fs, path, 0)
	if errors.Is(err, fs.ErrNotExist) {
		p.vanished(path)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scan.Close()) }()
	s := &segmentCheck{partition: p, path: path, size: scan.Size()}
	var first, last record.ControlType = noControl, noControl
	count, end := 0, int64(0)
	_, nameEpoch, named := checkpoint.ParseSnapshotName(filepath.Base(path))
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		sp, err := scan.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		p.read(sp.End - sp.Position)
		if sp.Err != nil {
			p.damage(path, sp.Position, end, "%s", plain(sp.Err))
			continue
		}
		if sp.Batch.BaseOffset() != end {
			p.damage(path, sp.Position, sp.Batch.BaseOffset(), "the batch before ends at %d", end)
		}
		in, err := s.inspect(sp.Batch, nil)
		if err != nil {
			p.damage(path, sp.Position, sp.Batch.BaseOffset(), "%v", err)
		}
		if count == 0 {
			first = firstControl(sp.Batch)
			p.checkHeader(path, sp.Batch)
		}
		if named && sp.Batch.LeaderEpoch() != nameEpoch {
			p.damage(path, sp.Position, sp.Batch.BaseOffset(), "leader epoch %d, the name of the file says %d", sp.Batch.LeaderEpoch(), nameEpoch)
		}
		count++
		last, end = in.control, in.last+1
	}
	if first != record.ControlSnapshotHeader || last != record.ControlSnapshotFooter {
		p.damage(path, -1, -1, "a snapshot begins with a header and ends with a footer")
	}
	return nil
}

// checkHeader holds what a snapshot's header says against the log: the time of the last batch that
// is in it.
func (p *partition) checkHeader(path string, b record.Batch) {
	end, _, named := checkpoint.ParseSnapshotName(filepath.Base(path))
	if !named {
		return
	}
	if end > p.end() && len(p.logs) > 0 {
		p.damage(path, -1, end, "the snapshot ends at %d, the log at %d", end, p.end())
	}
	want, ok := p.snapshotTimes[end]
	if !ok || want == unknown {
		return
	}
	for r, err := range b.Records() {
		header := metadata.NewSnapshotHeaderRecord()
		if err == nil && metadata.DecodeControl(r.Value, header) == nil && header.LastContainedLogTimestamp != want {
			p.damage(path, -1, end, "the snapshot ends with a batch of time %d, that of the log there is of %d", header.LastContainedLogTimestamp, want)
		}
		return
	}
}

// noteSnapshotTime keeps the time of a batch that a snapshot ends with.
func (p *partition) noteSnapshotTime(b record.Batch) {
	if b.IsControl() {
		return
	}
	if _, ok := p.snapshotTimes[b.NextOffset()]; ok {
		p.snapshotTimes[b.NextOffset()] = b.MaxTimestamp()
	}
}

func firstControl(b record.Batch) record.ControlType {
	if t, ok := b.ControlType(); ok {
		return t
	}
	return noControl
}

func (p *partition) checkQuorumState(path string) error {
	data, err := vfs.ReadFile(p.fs, path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		p.vanished(path)
		return nil
	}
	if err != nil {
		return err
	}
	var state struct {
		LeaderID    *int32 `json:"leaderId"`
		LeaderEpoch *int32 `json:"leaderEpoch"`
		VotedID     *int32 `json:"votedId"`
		Version     *int16 `json:"data_version"`
	}
	if err := json.Unmarshal(data, &state); err != nil {
		p.damage(path, -1, -1, "%v", err)
		return nil
	}
	if state.LeaderID == nil || state.LeaderEpoch == nil || state.VotedID == nil || state.Version == nil {
		p.damage(path, -1, -1, "leaderId, leaderEpoch, votedId or data_version is missing")
	} else if *state.Version < 0 || *state.Version > 1 || *state.LeaderEpoch < 0 {
		p.damage(path, -1, -1, "data_version %d, leaderEpoch %d", *state.Version, *state.LeaderEpoch)
	} else if last := p.epochs.prev.got; *state.LeaderEpoch < last {
		p.damage(path, -1, -1, "leaderEpoch %d, the log has batches of %d", *state.LeaderEpoch, last)
	} else if *state.LeaderEpoch > last && *state.LeaderID >= 0 && *state.LeaderID == p.nodeID {
		p.note(path, -1, -1, "node %d leads in epoch %d, the log ends with %d: an unclean stop came between, or the end of the log is missing",
			*state.LeaderID, *state.LeaderEpoch, last)
	}
	return nil
}
