// Command clients runs Go clients that other people wrote, franz-go and sarama, against a
// broker: each codec, idempotent and not, keys, nulls, headers, timestamps, tombstones, a
// consumer group. It prints "ok NAME" or "FAIL NAME: why" for each check.
package main

import (
	"flag"
	"fmt"
	"os"
)

// A check is one round trip under a name that is also the topic's.
type check struct {
	name string
	run  func(broker, topic string) error
}

func main() {
	broker := flag.String("broker", "127.0.0.1:9092", "host:port")
	flag.Parse()
	failed := false
	for _, c := range append(franzChecks(), saramaChecks()...) {
		if err := c.run(*broker, c.name); err != nil {
			failed = true
			fmt.Printf("FAIL %s: %v\n", c.name, err)
			continue
		}
		fmt.Printf("ok   %s\n", c.name)
	}
	if failed {
		os.Exit(1)
	}
}

var codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// recordCount is how many records a round trip has.
const recordCount = 1000
