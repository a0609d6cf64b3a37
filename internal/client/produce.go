package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lineSizeMax bounds one line of input.
const lineSizeMax = 128 << 20

// ProduceOptions say where records go and how lines of input become records.
type ProduceOptions struct {
	Brokers      []string
	Topic        string
	Partition    int32    // -1: by key, as every Kafka client does
	KeySeparator string   // splits a line into key and value; "" for no keys
	NullMarker   string   // a key or value of just this text is null; "" for none
	Headers      []string // name=value, added to each record
	JSON         bool     // lines are records as `consume --json` writes them
	Compression  string   // none, gzip, snappy, lz4, zstd
	Acks         string   // all, 1, 0
	Idempotent   bool
	Progress     io.Writer // nil: none
}

// Produce sends each line of in as a record and returns how many were acknowledged. It
// goes on after a record was refused and reports the first refusal at the end.
func Produce(ctx context.Context, o ProduceOptions, in io.Reader) (int64, error) {
	parse, err := o.parser()
	if err != nil {
		return 0, err
	}
	opts, err := o.clientOptions()
	if err != nil {
		return 0, err
	}
	client, err := connect(ctx, o.Brokers, opts...)
	if err != nil {
		return 0, err
	}
	defer client.Close()

	progress := StartProgress("produced", o.Progress)
	failures := sender{client: client, progress: progress}
	err = failures.sendLines(ctx, in, parse)
	if flushErr := client.Flush(ctx); err == nil {
		err = flushErr
	}
	progress.Stop()
	return progress.Records(), errors.Join(err, failures.err())
}

type sender struct {
	client   *kgo.Client
	progress *Progress
	failed   atomic.Int64
	first    atomic.Pointer[error]
}

func (s *sender) err() error {
	if n := s.failed.Load(); n > 0 {
		return fmt.Errorf("%d records were not accepted, the first because: %w", n, *s.first.Load())
	}
	return nil
}

func (s *sender) sendLines(ctx context.Context, in io.Reader, parse func([]byte) (*kgo.Record, error)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), lineSizeMax)
	for number := 1; lines.Scan(); number++ {
		record, err := parse(bytes.Clone(lines.Bytes()))
		if err != nil {
			return fmt.Errorf("input line %d: %w", number, err)
		}
		s.client.Produce(ctx, record, s.done)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return lines.Err()
}

func (s *sender) done(r *kgo.Record, err error) {
	if err == nil {
		s.progress.Add(len(r.Key) + len(r.Value))
		return
	}
	s.failed.Add(1)
	s.first.CompareAndSwap(nil, &err)
}

// parser returns the function from a line to a record, which may keep the line.
func (o ProduceOptions) parser() (func([]byte) (*kgo.Record, error), error) {
	var headers []kgo.RecordHeader
	for _, h := range o.Headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("header %q: want name=value", h)
		}
		headers = append(headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return func(line []byte) (*kgo.Record, error) {
		record, err := o.parseLine(line)
		if err != nil {
			return nil, err
		}
		record.Topic = o.Topic
		if o.Partition >= 0 {
			record.Partition = o.Partition
		}
		record.Headers = append(record.Headers, headers...)
		return record, nil
	}, nil
}

func (o ProduceOptions) parseLine(line []byte) (*kgo.Record, error) {
	if o.JSON {
		return fromJSON(line)
	}
	if o.KeySeparator == "" {
		return &kgo.Record{Value: o.null(line)}, nil
	}
	key, value, ok := bytes.Cut(line, []byte(o.KeySeparator))
	if !ok {
		return nil, fmt.Errorf("no key separator %q in %q", o.KeySeparator, line[:min(len(line), 80)])
	}
	return &kgo.Record{Key: o.null(key), Value: o.null(value)}, nil
}

// null is nil for the null marker, b itself otherwise: an empty value is not a null one.
func (o ProduceOptions) null(b []byte) []byte {
	if o.NullMarker != "" && string(b) == o.NullMarker {
		return nil
	}
	return b
}

func (o ProduceOptions) clientOptions() ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.AllowAutoTopicCreation(), kgo.ProducerBatchMaxBytes(1_000_000)}
	codec, err := compressionCodec(o.Compression)
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.ProducerBatchCompression(codec))
	switch o.Acks {
	case "all", "-1":
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()))
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()))
	default:
		return nil, fmt.Errorf("acks %q: want all, 1 or 0", o.Acks)
	}
	if !o.Idempotent || o.Acks == "0" || o.Acks == "1" {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	if o.Partition >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	return opts, nil
}

func compressionCodec(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "none", "":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.NoCompression(), fmt.Errorf("compression %q: want none, gzip, snappy, lz4 or zstd", name)
}
