package broker

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/ownership"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// judge reads the metadata log and decides whether the log directories are this broker's. Nothing
// has been written when it is called.
func (b *Broker) judge(c *config.Broker, found logdir.Evidence) error {
	q, err := quorum.Read(quorum.Options{
		FS: b.fs, Dir: metadataDir(c), NodeID: found.NodeID, ClusterID: found.ClusterID, Logger: b.logger,
		OnFailure: func(err error) { b.fail(fmt.Errorf("the metadata log failed: %w", err)) },
		OnBroken:  b.freeze, Peers: b.voter.peers(c),
	})
	if err != nil {
		return err
	}
	b.quorum = q
	e, err := b.gather(c, found, q)
	if err != nil {
		return err
	}
	if b.voter != nil {
		b.voter.found, e.Partial = found, true
		b.voter.cluster.Store(&found.ClusterID)
	}
	return b.decide(c, e)
}

// decide makes the verdict.
func (b *Broker) decide(c *config.Broker, e ownership.Evidence) error {
	b.verdict = ownership.Judge(e, ownership.Permissions{
		TakeOver: c.Bool("gregor.take.over.as.only.voter"), AcceptLoss: c.Bool("gregor.accept.metadata.loss"), PutAside: c.Bool("gregor.put.aside.strays"),
	})
	for _, w := range b.verdict.Warnings {
		b.logger.Warn(w)
	}
	return b.verdict.Err()
}

// gather brings the evidence together.
func (b *Broker) gather(c *config.Broker, found logdir.Evidence, q *quorum.Quorum) (ownership.Evidence, error) {
	e := ownership.Evidence{
		Roles: c.List("process.roles"), QuorumVoters: c.List("controller.quorum.voters"), BootstrapServers: c.List("controller.quorum.bootstrap.servers"),
		Several: b.voter != nil, Logs: found, Metadata: q.Evidence(), Image: q.Image(),
	}
	for _, d := range found.Dirs {
		if path, ok := quorum.Dir(b.fs, d.Path); ok && path != e.Metadata.Dir {
			e.OtherMetadata = append(e.OtherMetadata, path)
		}
	}
	if e.Metadata.Empty {
		e.Checkpointed = b.checkpointed(found.Dirs)
	}
	var err error
	e.Removed, err = q.RemovedTopics(ownership.UnknownTopics(e.Image, found.Dirs))
	return e, err
}

// checkpointed finds checkpoint files with entries, be they damaged or not.
func (b *Broker) checkpointed(dirs []logdir.FoundDir) (list []ownership.Checkpointed) {
	for _, d := range dirs {
		for _, name := range []string{checkpoint.HighWatermarks, checkpoint.RecoveryPoints, checkpoint.LogStartOffsets} {
			path := filepath.Join(d.Path, name)
			entries, err := checkpoint.ReadOffsets(b.fs, path)
			if err != nil && !errors.Is(err, checkpoint.ErrCorrupt) {
				continue
			}
			for p := range entries {
				list = append(list, ownership.Checkpointed{Path: path, Partition: p})
				break
			}
		}
	}
	return list
}

// fate is the verdict on a partition. If its topic id has changed since the verdict was made, the metadata
// log is asked whether the topic of that id was removed.
func (b *Broker) fate(at logdir.FoundPartition) logdir.Decision {
	d := b.verdict.Fate(at)
	if !at.Changed || d.Fate != logdir.LeaveAlone {
		return d
	}
	removed, err := b.quorum.RemovedTopics(map[uuid.UUID]bool{at.TopicID: true})
	if err != nil {
		b.logger.Warn("the metadata log cannot be asked for a topic", "id", at.TopicID, "err", err)
	}
	if removed[at.TopicID] {
		return ownership.Deleted(at)
	}
	return d
}

// takePossession does what the operator has permitted and the verdict asks for.
func (b *Broker) takePossession() error {
	if b.verdict.AcceptLoss {
		b.logger.Warn("metadata is missing, and the broker goes on with what is left, as it was told", "log", b.quorum.Evidence().Dir, "end", b.quorum.NextOffset())
		if err := b.quorum.AcceptLoss(); err != nil {
			return err
		}
	}
	if b.verdict.TakeOver {
		b.logger.Warn("this node decides alone from now on, as it was told", "node", b.logs.NodeID())
		b.quorum.TakeOver(b.logs.MetadataDirectoryID())
	}
	return nil
}

// freeze notes that a committed change of the metadata could not be applied. What there was goes on
// being served; nothing can be changed until the next start, which names the record.
func (b *Broker) freeze(err error) {
	b.frozen.Store(&err)
	b.logger.Error("the metadata does not change any more: a committed batch cannot be applied", "err", err)
}
