package logdir

import (
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A Config holds the broker-level settings. DefaultConfig has Kafka's defaults; in a
// Config made otherwise, an interval of zero switches its task off.
type Config struct {
	FS          vfs.FS         // nil is the host's
	Caches      segment.Caches // of all segments; zero are new ones
	Dirs        []string       // log.dirs, or log.dir; the first is where ties go
	Cordoned    []string       // of Dirs: cordoned.log.dirs
	MetadataDir string         // metadata.log.dir; "" is the first of Dirs
	NodeID      int32          // node.id; negative takes the one in meta.properties, or 1
	ClusterID   string         // "" takes the one in meta.properties, or a new one

	RecoveryThreads int // num.recovery.threads.per.data.dir

	RetentionInterval      time.Duration // log.retention.check.interval.ms
	FlushInterval          time.Duration // log.flush.scheduler.interval.ms
	RecoveryPointInterval  time.Duration // log.flush.offset.checkpoint.interval.ms
	LogStartInterval       time.Duration // log.flush.start.offset.checkpoint.interval.ms
	HighWatermarkInterval  time.Duration // replica.high.watermark.checkpoint.interval.ms
	ProducerExpiryInterval time.Duration // producer.id.expiration.check.interval.ms
	InitialTaskDelay       time.Duration // log.initial.task.delay.ms
	FileDeleteDelay        time.Duration // log.segment.delete.delay.ms, for whole partitions
	ProducerIDExpiration   time.Duration // producer.id.expiration.ms

	DiskReserve         int64         // gregor.disk.reserve.bytes; 0 is no reserve
	ScrubInterval       time.Duration // gregor.scrub.interval.ms
	ScrubBytesPerSecond int64         // gregor.scrub.bytes.per.second

	MoverThreads int   // num.replica.alter.log.dirs.threads; 0 is one for each directory
	MoveRate     int64 // replica.alter.log.dirs.io.max.bytes.per.second; 0 is no bound

	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
	Random io.Reader        // of ids, names and pauses; nil is the host's; never fails

	// NewClusterID returns the id of the cluster where no directory and no configuration has one. Nil
	// makes one of Random.
	NewClusterID func() (string, error)

	// Judge, if not nil, is asked by Open when all directories are locked and read, before anything
	// is written. Its error ends Open.
	Judge func(Evidence) error

	// OnDirFailure is told of a directory that goes offline after Open; the manager has
	// let go of it by then. It runs on a goroutine of the manager's and may call the
	// manager, Close excepted.
	OnDirFailure func(dir string, id uuid.UUID, err error)

	// ReplaceLog runs open while nothing is appended to a partition, and makes the log that
	// it returns, if any, the partition's. Nil runs it only. It may hold locks under which the
	// manager is called.
	ReplaceLog func(p topic.Partition, open func() (*commitlog.Log, error)) error
	// Cleaner compacts the logs. Nil is none; compacted logs are left alone then, by retention too.
	Cleaner Cleaner

	// OnMoved, if not nil, is told of a partition that has moved to another directory.
	OnMoved func(p topic.Partition, topicID, dirID uuid.UUID)
}

// DefaultConfig returns Kafka's defaults, with no directory.
func DefaultConfig() Config {
	return Config{
		NodeID:                 -1,
		RecoveryThreads:        2,
		RetentionInterval:      5 * time.Minute,
		FlushInterval:          config.Never,
		RecoveryPointInterval:  time.Minute,
		LogStartInterval:       time.Minute,
		HighWatermarkInterval:  5 * time.Second,
		ProducerExpiryInterval: 10 * time.Minute,
		InitialTaskDelay:       30 * time.Second,
		FileDeleteDelay:        time.Minute,
		ProducerIDExpiration:   24 * time.Hour,
		MoveRate:               math.MaxInt64,
		DiskReserve:            64 << 20,
		ScrubInterval:          7 * 24 * time.Hour,
		ScrubBytesPerSecond:    10 << 20,
	}
}

func (c *Config) complete() {
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.Caches == (segment.Caches{}) {
		c.Caches = segment.NewCaches()
	}
	if c.MetadataDir == "" && len(c.Dirs) > 0 {
		c.MetadataDir = c.Dirs[0]
	}
	c.RecoveryThreads = max(c.RecoveryThreads, 1)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = random.Host("log directories")
	}
	if c.NewClusterID == nil {
		c.NewClusterID = func() (string, error) { return uuid.From(c.Random).String(), nil }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.ReplaceLog == nil {
		c.ReplaceLog = func(_ topic.Partition, open func() (*commitlog.Log, error)) error {
			_, err := open()
			return err
		}
	}
	if c.Cleaner == nil {
		c.Cleaner = noCleaner{}
	}
	if c.OnDirFailure == nil {
		c.OnDirFailure = func(string, uuid.UUID, error) {}
	}
}

// LoadOptions are what loading must know of the cluster's metadata.
type LoadOptions struct {
	// LogConfig gives the settings of a topic; nil gives the defaults to all.
	LogConfig func(topicName string) commitlog.Config
	// Fate says what becomes of a partition. TopicID is zero when the directory has none: Kafka
	// before 2.8 wrote it. A nil Fate keeps all. It is called by several goroutines.
	Fate func(FoundPartition) Decision
	// Belongs reports whether a partition is this broker's, of which there is nothing but entries in
	// checkpoints. Nil takes all for its own.
	Belongs func(topic.Partition) bool
	// TopicID, if not nil, names the topic of a kept partition whose directory has no id;
	// the id is written there.
	TopicID func(topicName string) uuid.UUID
}
