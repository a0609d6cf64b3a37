package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

func saramaChecks() []check {
	var checks []check
	for i, codec := range []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD} {
		for _, idempotent := range []bool{true, false} {
			checks = append(checks, check{fmt.Sprintf("sarama-%s-%t", codecs[i], idempotent), func(broker, topic string) error {
				return saramaRoundTrip(broker, topic, codec, idempotent)
			}})
		}
	}
	return append(checks, check{"sarama-group", saramaGroup})
}

func saramaConfig() *sarama.Config {
	c := sarama.NewConfig()
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Consumer.Return.Errors = true
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	return c
}

func saramaRoundTrip(broker, topic string, codec sarama.CompressionCodec, idempotent bool) error {
	c := saramaConfig()
	c.Producer.Compression = codec
	if idempotent {
		c.Producer.Idempotent = true
		c.Net.MaxOpenRequests = 1
	}
	client, err := sarama.NewClient([]string{broker}, c)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := saramaProduce(client, topic); err != nil {
		return err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer partition.Close()
	deadline := time.After(timeout)
	for i := range recordCount {
		select {
		case m := <-partition.Messages():
			want := saramaMessage(topic, i)
			if m.Offset != int64(i) || string(m.Key) != fmt.Sprint("key-", i) || !bytes.Equal(m.Value, want.Value.(sarama.ByteEncoder)) ||
				len(m.Headers) != 1 || string(m.Headers[0].Value) != "v" {
				return fmt.Errorf("record %d came back as offset %d, key %q, %d bytes, %d headers", i, m.Offset, m.Key, len(m.Value), len(m.Headers))
			}
		case err := <-partition.Errors():
			return err
		case <-deadline:
			return fmt.Errorf("only %d records in %v", i, timeout)
		}
	}
	return nil
}

func saramaMessage(topic string, i int) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprint("key-", i)),
		Value:   sarama.ByteEncoder(bytes.Repeat([]byte{byte('a' + i%26)}, i)),
		Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte("v")}}}
}

func saramaProduce(client sarama.Client, topic string) error {
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return err
	}
	var messages []*sarama.ProducerMessage
	for i := range recordCount {
		messages = append(messages, saramaMessage(topic, i))
	}
	return producer.SendMessages(messages)
}

// saramaGroup reads all of a topic as the member of a group.
func saramaGroup(broker, topic string) error {
	client, err := sarama.NewClient([]string{broker}, saramaConfig())
	if err != nil {
		return err
	}
	defer client.Close()
	if err := saramaProduce(client, topic); err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroupFromClient(topic+"-group", client)
	if err != nil {
		return err
	}
	defer group.Close()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	counter := &saramaCounter{done: cancel}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{topic}, counter); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	if counter.n != recordCount {
		return fmt.Errorf("%d records in %v, want %d", counter.n, timeout, recordCount)
	}
	return nil
}

// A saramaCounter counts the records of a single partition.
type saramaCounter struct {
	n    int
	done func()
}

func (c *saramaCounter) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (c *saramaCounter) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c *saramaCounter) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			s.MarkMessage(m, "")
			if c.n++; c.n == recordCount {
				s.Commit()
				c.done()
			}
		case <-s.Context().Done():
			return nil
		}
	}
}
