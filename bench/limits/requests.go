package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/record"
)

// old lets readers of Fetch v2 read everything at once.
func (o *options) old(ctx context.Context) error {
	b, err := o.startWithTopic(ctx)
	if err != nil {
		return err
	}
	defer b.remove()
	if err := o.fill(ctx, b.addr); err != nil {
		return err
	}
	before := b.memory("VmRSS")
	began := time.Now()
	var failed, read atomic.Int64
	var readers, stuck sync.WaitGroup
	for i := range o.readers {
		if o.slow && i%2 == 1 {
			stuck.Go(func() { askOnly(b.addr, o.partitions) })
			continue
		}
		readers.Go(func() {
			n, err := readOld(b.addr, o.partitions)
			read.Add(n)
			if err != nil {
				failed.Add(1)
			}
		})
	}
	readers.Wait()
	fmt.Printf("%d readers of Fetch v2, %d partitions of %d MB, codec %s, slow ones %v: %d MB in %v, %d readers failed, RSS before %s, at its peak %s\n",
		o.readers, o.partitions, o.megabytes, o.codec, o.slow, read.Load()>>20, time.Since(began).Round(time.Millisecond), failed.Load(), before, b.memory("VmHWM"))
	b.remove()
	stuck.Wait()
	return nil
}

// fill writes records of 1 KB in batches of up to 1 MB.
func (o *options) fill(ctx context.Context, addr string) error {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(50*time.Millisecond), kgo.ProducerBatchCompression(codecs[o.codec]))
	if err != nil {
		return err
	}
	defer client.Close()
	var first atomic.Pointer[error]
	value := make([]byte, 1000)
	for i := range o.megabytes * 1000 {
		for p := range o.partitions {
			binary.BigEndian.PutUint64(value, uint64(i))
			client.Produce(ctx, &kgo.Record{Topic: topicName, Partition: int32(p), Value: append([]byte(nil), value...)}, func(_ *kgo.Record, err error) {
				if err != nil {
					first.CompareAndSwap(nil, &err)
				}
			})
		}
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

func oldFetch(partitions int, offsets []int64) []byte {
	req := &kmsg.FetchRequest{Version: 2, ReplicaID: -1, MaxWaitMillis: 500, MinBytes: 1}
	topic := kmsg.FetchRequestTopic{Topic: topicName}
	for p := range partitions {
		topic.Partitions = append(topic.Partitions, kmsg.FetchRequestTopicPartition{Partition: int32(p), FetchOffset: offsets[p], PartitionMaxBytes: 1 << 20})
	}
	req.Topics = append(req.Topics, topic)
	return frame(req)
}

// frame is a request with its size and header.
func frame(req kmsg.Request) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 4), uint16(req.Key()))
	b = binary.BigEndian.AppendUint16(b, uint16(req.GetVersion()))
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint16(b, 6)
	b = req.AppendTo(append(b, "limits"...))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func readAnswer(c net.Conn, resp kmsg.Response) error {
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(head)-4)
	if _, err := io.ReadFull(c, body); err != nil {
		return err
	}
	return resp.ReadFrom(body)
}

// readOld asks ten times, as a client that goes through the partitions.
func readOld(addr string, partitions int) (read int64, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	offsets := make([]int64, partitions)
	for range 10 {
		if _, err := c.Write(oldFetch(partitions, offsets)); err != nil {
			return read, err
		}
		resp := &kmsg.FetchResponse{Version: 2}
		if err := readAnswer(c, resp); err != nil {
			return read, err
		}
		for _, p := range resp.Topics[0].Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return read, err
			}
			read += int64(len(p.RecordBatches))
			for b := range record.Batches(p.RecordBatches) {
				offsets[p.Partition] = b.NextOffset()
			}
		}
	}
	return read, nil
}

// askOnly asks and never reads.
func askOnly(addr string, partitions int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer c.Close()
	c.(*net.TCPConn).SetReadBuffer(4096)
	c.Write(oldFetch(partitions, make([]int64, partitions)))
	time.Sleep(30 * time.Second)
}

// firstAppend appends to all partitions of a new topic with one request.
func (o *options) firstAppend(ctx context.Context) error {
	b, err := o.startWithTopic(ctx)
	if err != nil {
		return err
	}
	defer b.remove()
	builder := record.NewBuilder(record.BuilderOptions{})
	if err := builder.Append(record.Record{Timestamp: time.Now().UnixMilli(), Value: []byte("first")}); err != nil {
		return err
	}
	set := builder.Build()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, round := range []string{"first", "second"} {
		req := &kmsg.ProduceRequest{Version: 8, Acks: -1, TimeoutMillis: 30000}
		topic := kmsg.ProduceRequestTopic{Topic: topicName}
		for p := range o.partitions {
			topic.Partitions = append(topic.Partitions, kmsg.ProduceRequestTopicPartition{Partition: int32(p), Records: append([]byte(nil), set...)})
		}
		req.Topics = append(req.Topics, topic)
		began := time.Now()
		if _, err := c.Write(frame(req)); err != nil {
			return err
		}
		resp := &kmsg.ProduceResponse{Version: 8}
		if err := readAnswer(c, resp); err != nil {
			return err
		}
		codes := map[int16]int{}
		for _, p := range resp.Topics[0].Partitions {
			codes[p.ErrorCode]++
		}
		fmt.Printf("the %s append to %d partitions took %v, error codes %v\n", round, o.partitions, time.Since(began).Round(time.Millisecond), codes)
	}
	return nil
}
