package cleaner

import (
	"math"
	"time"

	"github.com/gregor-kafka/gregor/internal/config"
)

// A Config holds the broker-level settings of cleaning, all of which can be changed while the
// broker runs, save Enabled.
type Config struct {
	Enabled         bool          // log.cleaner.enable
	Threads         int           // log.cleaner.threads; 0 is as not enabled
	DedupeBytes     int64         // log.cleaner.dedupe.buffer.size, for all threads together
	LoadFactor      float64       // log.cleaner.io.buffer.load.factor
	BufferBytes     int           // log.cleaner.io.buffer.size, for all threads together
	MaxMessageBytes int           // message.max.bytes
	BytesPerSecond  float64       // log.cleaner.io.max.bytes.per.second
	Backoff         time.Duration // log.cleaner.backoff.ms
}

// BrokerConfig takes the settings out of the broker's.
func BrokerConfig(b *config.Broker) Config {
	return Config{
		Enabled:         b.Bool("log.cleaner.enable"),
		Threads:         b.Int("log.cleaner.threads"),
		DedupeBytes:     b.Long("log.cleaner.dedupe.buffer.size"),
		LoadFactor:      b.Double("log.cleaner.io.buffer.load.factor"),
		BufferBytes:     b.Int("log.cleaner.io.buffer.size"),
		MaxMessageBytes: b.Int("message.max.bytes"),
		BytesPerSecond:  b.Double("log.cleaner.io.max.bytes.per.second"),
		Backoff:         b.Milliseconds("log.cleaner.backoff.ms"),
	}
}

// threads is how many threads clean. A change of the number is refused beforehand if it is by
// more than a factor of two.
func (c *Config) threads() int {
	if !c.Enabled {
		return 0
	}
	return c.Threads
}

// mapBytes is the share of one thread.
func (c *Config) mapBytes() int64 {
	return min(c.DedupeBytes/int64(max(c.Threads, 1)), math.MaxInt32)
}

// backoff keeps threads from spinning when log.cleaner.backoff.ms is 0.
func (c *Config) backoff() time.Duration { return max(c.Backoff, time.Millisecond) }
