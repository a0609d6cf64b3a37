// Limits measures what a running broker does where it comes near its bounds:
//
//	-what old     memory at its peak, and time, of many readers of Fetch v2, which convert
//	-what append  the first append to many partitions in one request
//	-what stop    a stop in the middle of the creation of many partitions
//
//	go run ./bench/limits -what old -gregor PATH [-readers N] [-partitions N] [-megabytes N] [-codec NAME] [-slow]
//
// It starts the broker itself, on a directory of its own. Times are by the clock.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type options struct {
	gregor, dir, codec             string
	readers, partitions, megabytes int
	slow                           bool
}

func main() {
	var o options
	what := flag.String("what", "old", "old, append or stop")
	flag.StringVar(&o.gregor, "gregor", "gregor", "the binary")
	flag.StringVar(&o.dir, "dir", "", "where to put the data (default: a temporary directory)")
	flag.StringVar(&o.codec, "codec", "none", "none, gzip, snappy or lz4")
	flag.IntVar(&o.readers, "readers", 500, "readers at once")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of the topic")
	flag.IntVar(&o.megabytes, "megabytes", 16, "records in each partition")
	flag.BoolVar(&o.slow, "slow", false, "half of the readers take nothing")
	flag.Parse()
	run := map[string]func(context.Context) error{"old": o.old, "append": o.firstAppend, "stop": o.stop}[*what]
	if run == nil {
		log.Fatalf("-what %s: want old, append or stop", *what)
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// create makes a topic.
func create(ctx context.Context, addr string, partitions int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, int32(partitions), 1, nil, topicName)
	return err
}

const topicName = "limits"

// stop measures how long a stop takes that comes while partitions are created.
func (o *options) stop(ctx context.Context) error {
	b, err := o.start()
	if err != nil {
		return err
	}
	defer b.remove()
	created := make(chan error, 1)
	began := time.Now()
	go func() { created <- create(ctx, b.addr, o.partitions) }()
	time.Sleep(300 * time.Millisecond)
	stopping := time.Now()
	err = b.stop()
	fmt.Printf("%d partitions: stopped %v after the request, in %v (%v); the request: %v\n",
		o.partitions, stopping.Sub(began).Round(time.Millisecond), time.Since(stopping).Round(time.Millisecond), err, <-created)
	return b.restart()
}
