package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// checkTogether holds the rules that need more than one key, or more than the table can
// say; they count for dynamic values too.
func (b *Broker) checkTogether() error {
	for name, least := range map[string]int64{"log.retention.ms": math.MinInt64, "log.roll.ms": 1, "log.roll.jitter.ms": 0, "log.flush.interval.ms": 0} {
		for _, m := range families[name] {
			text, ok := b.Get(m.name)
			if !ok {
				continue
			}
			n, _ := strconv.ParseInt(text, 10, 64)
			if n < least || name == "log.retention.ms" && n == 0 {
				return &ValueError{Key: m.name, Value: text, Want: familyWants[name]}
			}
		}
	}
	if err := b.checkCleaner(); err != nil {
		return err
	}
	if err := b.checkCordoned(); err != nil {
		return err
	}
	if err := b.checkConnections(); err != nil {
		return err
	}
	return b.Topic(nil).checkTogether()
}

// checkCleaner asks for a map of keys for each thread that holds some.
func (b *Broker) checkCleaner() error {
	const bufferKey, factorKey = "log.cleaner.dedupe.buffer.size", "log.cleaner.io.buffer.load.factor"
	if factor := b.Double(factorKey); factor <= 0 || factor > 1 {
		return &ValueError{Key: factorKey, Value: formatDouble(factor), Want: "above 0, at most 1"}
	}
	size, threads := b.Long(bufferKey), b.Int("log.cleaner.threads")
	if b.Bool("log.cleaner.enable") && threads > 0 && size/int64(threads) <= 1<<20 {
		return &ValueError{Key: bufferKey, Value: strconv.FormatInt(size, 10),
			Want: fmt.Sprintf("more than 1 MiB for each of log.cleaner.threads, which is %d", threads)}
	}
	return nil
}

var familyWants = map[string]string{
	"log.retention.ms":      "-1 (no limit, as all below) or at least 1",
	"log.roll.ms":           "at least 1",
	"log.roll.jitter.ms":    "at least 0",
	"log.flush.interval.ms": "at least 0",
}

// checkStatic holds the rules for keys that only server.properties can set.
func (b *Broker) checkStatic() error {
	node, broker := b.Int("node.id"), b.Int("broker.id")
	if b.IsSet("node.id") && b.IsSet("broker.id") && node != broker {
		return fmt.Errorf("node.id=%d and broker.id=%d: want the same number; one of them is enough", node, broker)
	}
	if roles := b.List("process.roles"); len(roles) > 0 && !slices.Contains(roles, "broker") {
		return fmt.Errorf("process.roles=%s: gregor serves brokers; want broker, or broker,controller", roles[0])
	}
	if len(b.LogDirs()) == 0 || slices.Contains(b.LogDirs(), "") {
		return fmt.Errorf("log.dirs is empty: want at least one directory, and no empty item")
	}
	if codec := b.Int("offsets.topic.compression.codec"); codec < 0 || codec > 4 {
		return fmt.Errorf("offsets.topic.compression.codec=%d: want 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)", codec)
	}
	if acks, ok := b.static["offsets.commit.required.acks"]; ok && acks != "-1" {
		return fmt.Errorf("offsets.commit.required.acks=%s: gregor acknowledges offsets when all in-sync replicas have them; want -1, or leave it out", acks)
	}
	if _, err := b.HTTPListener(); err != nil {
		return err
	}
	_, err := b.Listeners()
	return cmp.Or(err, b.checkVoters())
}
