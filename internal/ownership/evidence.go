package ownership

import (
	"errors"

	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/quorum"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// ErrRefused matches the errors of a verdict against the start.
var ErrRefused = errors.New("start refused")

// Evidence is all that a verdict is made from.
type Evidence struct {
	Roles            []string // process.roles
	QuorumVoters     []string // controller.quorum.voters, id@host:port
	BootstrapServers []string // controller.quorum.bootstrap.servers

	// Several: this node is to vote beside the others that QuorumVoters names.
	Several bool
	// Partial: the other voters may have committed what is not in Image. Partitions are judged when it is.
	Partial bool

	Logs     logdir.Evidence
	Metadata quorum.Evidence
	Image    *metadata.Image // what the metadata log adds up to

	// Removed are those of UnknownTopics whose removal is in the metadata log.
	Removed map[uuid.UUID]bool
	// OtherMetadata are metadata logs in directories that are not metadata.log.dir.
	OtherMetadata []string
	// Checkpointed are partitions in checkpoint files. They are looked for only when the metadata
	// log is empty.
	Checkpointed []Checkpointed
}

// Checkpointed is a checkpoint file with an entry.
type Checkpointed struct {
	Path      string
	Partition topic.Partition
}

// Permissions are what the operator allows for a start.
type Permissions struct {
	TakeOver   bool // decide alone although others voted
	AcceptLoss bool // go on with what is left of the metadata
	PutAside   bool // put aside every partition that the metadata does not know, however many
}

// How a permission is given.
const (
	takeOverFlag   = "--take-over-as-only-voter (gregor.take.over.as.only.voter=true)"
	acceptLossFlag = "--accept-metadata-loss (gregor.accept.metadata.loss=true)"
	putAsideFlag   = "--put-aside-strays (gregor.put.aside.strays=true)"
)

// A Verdict says whether a start may go on, and with what.
type Verdict struct {
	Refusals   []error // any: the start ends here
	TakeOver   bool    // others voted, and may be left behind
	AcceptLoss bool    // metadata is missing, and may be
	Warnings   []string

	partitions *partitions
}

// Err returns the refusals as one error, or nil.
func (v *Verdict) Err() error { return errors.Join(v.Refusals...) }

// Fate returns what becomes of a partition. It may be called concurrently.
func (v *Verdict) Fate(at logdir.FoundPartition) logdir.Decision { return v.partitions.fate(at) }

// Judge makes the verdict.
func Judge(e Evidence, may Permissions) Verdict {
	var v Verdict
	refuse := func(allowed bool, used *bool, refusals []error) {
		switch {
		case len(refusals) == 0:
		case allowed:
			*used = true
		default:
			v.Refusals = append(v.Refusals, refusals...)
		}
	}
	refuse(may.TakeOver, &v.TakeOver, voterRefusals(&e))
	refuse(may.AcceptLoss, &v.AcceptLoss, lossRefusals(&e))
	if !e.Metadata.Empty && len(e.OtherMetadata) > 0 {
		v.Warnings = append(v.Warnings, e.OtherMetadata[0]+" is a metadata log too, and not used; the one in use is "+e.Metadata.Dir)
	}
	v.partitions = newPartitions(&e, may.PutAside)
	if e.Partial {
		return v
	}
	count := v.partitions.count(&e)
	refuse(may.AcceptLoss || may.PutAside, &v.AcceptLoss, count.unknownRefusals(&e))
	refuse(may.PutAside, new(bool), count.strayRefusals())
	return v
}
