// Package explain shows what the cleaner knows: as JSON, which is what `gregor explain` and
// `gregor topics clean` get from a broker and what --json prints, and as text.
package explain

import (
	"time"

	"github.com/gregor-kafka/gregor/internal/cleaner"
)

// A Report explains the cleaning of a topic: why records are kept and what will go.
type Report struct {
	Topic      string      `json:"topic"`
	Partitions []Partition `json:"partitions"`
	Cleaner    Overview    `json:"cleaner"`
}

// An Overview is what all topics share.
type Overview struct {
	Enabled bool `json:"enabled"`
	Threads int  `json:"threads"`
	// Running are the cleanings under way, forced ones included.
	Running []Running `json:"running,omitempty"`
	// Next is what a free thread would clean now; nil for nothing.
	Next      *Next                `json:"next,omitempty"`
	BackoffMs int64                `json:"backoffMs"`
	Skipped   map[cleaner.Skip]int `json:"skipped,omitempty"` // compacted logs that are not due
}

// A Running is a cleaning under way.
type Running struct {
	Partition string   `json:"partition"`
	Progress  Progress `json:"progress"`
}

// A Next is the log that is cleaned next.
type Next struct {
	Partition  string  `json:"partition"`
	DirtyRatio float64 `json:"dirtyRatio"`
	Overdue    bool    `json:"overdue"` // max.compaction.lag.ms is exceeded
}

// A Partition explains one partition. Sizes are of .log files.
type Partition struct {
	Partition int32  `json:"partition"`
	Directory string `json:"directory"`
	Compacted bool   `json:"compacted"`
	Deleted   bool   `json:"retention"` // cleanup.policy has delete
	State     string `json:"state"`     // idle, cleaning, deleting, aborted or paused

	Segments       int   `json:"segments"`
	Bytes          int64 `json:"bytes"`
	CleanBytes     int64 `json:"cleanBytes"`     // below the first dirty offset
	CleanableBytes int64 `json:"cleanableBytes"` // dirty, and a cleaning would go through it
	HeldBytes      int64 `json:"heldBytes"`      // dirty, and may not be touched yet

	DirtyRatio    float64      `json:"dirtyRatio"`
	MinDirtyRatio float64      `json:"minDirtyRatio"`
	MissingBytes  int64        `json:"missingBytes"` // to become cleanable before the ratio is reached
	Due           bool         `json:"due"`
	Skip          cleaner.Skip `json:"skip,omitempty"` // why it is not due
	Uncleanable   string       `json:"uncleanable,omitempty"`

	// OverdueAt is when max.compaction.lag.ms makes the log due, whatever its ratio.
	OverdueAt *time.Time `json:"overdueAt,omitempty"`

	LogStart         int64 `json:"logStart"`
	FirstDirty       int64 `json:"firstDirty"`
	FirstUncleanable int64 `json:"firstUncleanable"`
	LastStable       int64 `json:"lastStable"`
	HighWatermark    int64 `json:"highWatermark"`
	End              int64 `json:"end"`

	// Limit is what keeps cleaning from going beyond FirstUncleanable.
	Limit       cleaner.Limit    `json:"limit,omitempty"`
	Transaction *OpenTransaction `json:"transaction,omitempty"`
	// YoungUntil is when min.compaction.lag.ms lets go of the segment at FirstUncleanable.
	YoungUntil *time.Time `json:"youngUntil,omitempty"`

	// Undecided are transactions whose end is lost in damage.
	Undecided []UndecidedTxn `json:"undecided,omitempty"`

	Progress *Progress `json:"progress,omitempty"`
	Last     *Outcome  `json:"last,omitempty"` // since the broker started
}

// An UndecidedTxn is a transaction that may have been committed or aborted.
type UndecidedTxn struct {
	ProducerID  int64 `json:"producerId"`
	FirstOffset int64 `json:"firstOffset"`
	EndOffset   int64 `json:"endOffset"` // behind its last record
}

// An OpenTransaction holds back the last stable offset.
type OpenTransaction struct {
	ProducerID    int64     `json:"producerId"`
	ProducerEpoch int16     `json:"producerEpoch"`
	FirstOffset   int64     `json:"firstOffset"`
	Since         time.Time `json:"since"`     // of its first batch, by the producer's clock
	LastWrite     time.Time `json:"lastWrite"` // of its last batch
}

// A Progress is how far a cleaning has come, with what is to be expected.
type Progress struct {
	Phase          string  `json:"phase"` // map or rewrite
	MapBytes       int64   `json:"mapBytes"`
	MapTotal       int64   `json:"mapTotalBytes"`
	ReadBytes      int64   `json:"readBytes"`
	ReadTotal      int64   `json:"readTotalBytes"`
	WrittenBytes   int64   `json:"writtenBytes"`
	Records        int64   `json:"records"`
	ElapsedMs      int64   `json:"elapsedMs"`
	BytesPerSecond float64 `json:"bytesPerSecond"` // read, in both phases
	RemainingMs    int64   `json:"remainingMs"`    // -1: not known yet
	Forced         bool    `json:"forced,omitempty"`
}

// An Outcome says how a cleaning ended, or several of one log, one behind the other, that
// somebody asked for. It does not change.
type Outcome struct {
	Partition string    `json:"partition"`
	Started   time.Time `json:"started"`
	TookMs    int64     `json:"tookMs"`
	Rounds    int       `json:"rounds"`
	Forced    bool      `json:"forced,omitempty"`
	Error     string    `json:"error,omitempty"`

	FirstDirty  int64   `json:"firstDirty"` // offsets [FirstDirty, EndOffset) are clean now
	EndOffset   int64   `json:"endOffset"`
	BytesBefore int64   `json:"bytesBefore"` // of the whole log
	BytesAfter  int64   `json:"bytesAfter"`
	Rate        float64 `json:"bytesPerSecond"` // read and written

	BytesRead      int64   `json:"bytesRead"` // in both phases
	BytesWritten   int64   `json:"bytesWritten"`
	RecordsRead    int64   `json:"recordsRead"`
	RecordsKept    int64   `json:"recordsKept"`
	MapKeys        int64   `json:"mapKeys"`
	MapUtilization float64 `json:"mapUtilization"`
	Damaged        int     `json:"damagedSegments,omitempty"`

	Removed Removed `json:"removed"`
}

// Removed counts records that went, by reason.
type Removed struct {
	Superseded int64 `json:"superseded"` // a later record has the same key
	Tombstones int64 `json:"tombstones"` // older than delete.retention.ms
	Aborted    int64 `json:"aborted"`    // of aborted transactions
	Keyless    int64 `json:"keyless"`
	Markers    int64 `json:"markers"` // of transactions that have no records left
}
