package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// timeout bounds one check.
const timeout = 60 * time.Second

func franzChecks() []check {
	var checks []check
	for i, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		for _, idempotent := range []bool{true, false} {
			checks = append(checks, check{fmt.Sprintf("franz-go-%s-%t", codecs[i], idempotent), func(broker, topic string) error {
				opts := []kgo.Opt{kgo.ProducerBatchCompression(codec)}
				if !idempotent {
					opts = append(opts, kgo.DisableIdempotentWrite())
				}
				return franzRoundTrip(broker, topic, nil, opts...)
			}})
		}
	}
	small := "1048576"
	return append(checks,
		check{"franz-go-rolled", func(broker, topic string) error {
			return franzRoundTrip(broker, topic, map[string]*string{"segment.bytes": &small},
				kgo.ProducerBatchMaxBytes(20_000))
		}},
		check{"franz-go-group", franzGroup},
		check{"franz-go-times", franzTimes})
}

// franzRecords has keys, null keys, null and empty values and headers.
func franzRecords(topic string, start time.Time) []*kgo.Record {
	var records []*kgo.Record
	for i := range recordCount {
		r := &kgo.Record{Topic: topic, Value: bytes.Repeat([]byte{byte('a' + i%26)}, i*3), Timestamp: start.Add(time.Duration(i) * time.Millisecond)}
		switch i % 4 {
		case 0:
			r.Key = fmt.Appendf(nil, "key-%d", i)
		case 1:
			r.Key, r.Value = []byte("tombstone"), nil
		case 2:
			r.Headers = []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, i)}, {Key: "null"}, {Key: "n", Value: []byte{}}}
		}
		records = append(records, r)
	}
	return records
}

func franzRoundTrip(broker, topic string, configs map[string]*string, opts ...kgo.Opt) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(broker), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return err
	}
	defer client.Close()
	if r, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, configs, topic); err != nil {
		return fmt.Errorf("create: %w %s", err, r.ErrMessage)
	}
	start := time.UnixMilli(time.Now().UnixMilli() - recordCount)
	if err := client.ProduceSync(ctx, franzRecords(topic, start)...).FirstErr(); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	client.AddConsumeTopics(topic)
	got, err := franzConsume(ctx, client, recordCount)
	if err != nil {
		return err
	}
	for i, want := range franzRecords(topic, start) {
		if err := franzSame(got[i], want, int64(i)); err != nil {
			return err
		}
	}
	return nil
}

func franzConsume(ctx context.Context, client *kgo.Client, n int) ([]*kgo.Record, error) {
	var got []*kgo.Record
	for len(got) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("after %d records: %w", len(got), err)
		}
		got = append(got, fetches.Records()...)
	}
	if len(got) != n {
		return nil, fmt.Errorf("%d records, want %d", len(got), n)
	}
	return got, nil
}

func franzSame(got, want *kgo.Record, offset int64) error {
	sameBytes := func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }
	same := got.Offset == offset && got.Timestamp.Equal(want.Timestamp) && sameBytes(got.Key, want.Key) && sameBytes(got.Value, want.Value) &&
		slices.EqualFunc(got.Headers, want.Headers, func(a, b kgo.RecordHeader) bool { return a.Key == b.Key && sameBytes(a.Value, b.Value) })
	if !same {
		return fmt.Errorf("record %d came back as offset %d, %v, key %q, %d bytes, headers %v", offset, got.Offset, got.Timestamp, got.Key, len(got.Value), got.Headers)
	}
	return nil
}

// franzGroup commits half, leaves, and joins again for the rest.
func franzGroup(broker, topic string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.AllowAutoTopicCreation())
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := producer.ProduceSync(ctx, franzRecords(topic, time.Now())...).FirstErr(); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	seen := map[int64]int{}
	for total := 0; total < recordCount; total = len(seen) {
		if err := franzGroupRound(ctx, broker, topic, seen); err != nil {
			return err
		}
	}
	for offset, times := range seen {
		if times != 1 {
			return fmt.Errorf("offset %d was consumed %d times", offset, times)
		}
	}
	return nil
}

func franzGroupRound(ctx context.Context, broker, topic string, seen map[int64]int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumerGroup(topic+"-group"), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	fetches := client.PollRecords(ctx, recordCount/2)
	if err := fetches.Err(); err != nil {
		return err
	}
	for _, r := range fetches.Records() {
		seen[r.Offset]++
	}
	return client.CommitRecords(ctx, fetches.Records()...)
}

// franzTimes asks for offsets by time: known-bugs redpanda#6604.
func franzTimes(broker, topic string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.AllowAutoTopicCreation())
	if err != nil {
		return err
	}
	defer client.Close()
	for _, ms := range []int64{1000, 5000, 2000, 3000} {
		r := &kgo.Record{Topic: topic, Value: []byte("x"), Timestamp: time.UnixMilli(ms)}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			return err
		}
	}
	for ms, want := range map[int64]int64{0: 0, 1000: 0, 1001: 1, 2500: 1, 5000: 1, 5001: 4} {
		listed, err := kadm.NewClient(client).ListOffsetsAfterMilli(ctx, ms, topic)
		if err != nil {
			return err
		}
		if got, _ := listed.Lookup(topic, 0); got.Err != nil || got.Offset != want {
			return fmt.Errorf("time %d: offset %d (%v), want %d", ms, got.Offset, got.Err, want)
		}
	}
	return nil
}
