package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A jsonRecord is one record as a line of JSON: keys, values and header values are
// base64 or null, so that every byte survives. `consume --json` writes what `produce
// --json` reads.
type jsonRecord struct {
	Topic         string       `json:"topic"`
	Partition     int32        `json:"partition"`
	Offset        int64        `json:"offset"`
	Timestamp     int64        `json:"timestamp"` // milliseconds; -1 for none
	TimestampType string       `json:"timestampType"`
	LeaderEpoch   *int32       `json:"leaderEpoch"`
	Key           []byte       `json:"key"`
	Value         []byte       `json:"value"`
	Headers       []jsonHeader `json:"headers"`
}

// A jsonHeader is a two-element array: name, value.
type jsonHeader struct {
	Name  string
	Value []byte
}

func (h jsonHeader) MarshalJSON() ([]byte, error) { return json.Marshal([2]any{h.Name, h.Value}) }

func (h *jsonHeader) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return errors.New("a header is an array of a name and a base64 value")
	}
	if err := json.Unmarshal(parts[0], &h.Name); err != nil {
		return err
	}
	return json.Unmarshal(parts[1], &h.Value)
}

func toJSON(r *kgo.Record) jsonRecord {
	j := jsonRecord{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(),
		TimestampType: timestampType(r), Key: r.Key, Value: r.Value, Headers: []jsonHeader{}}
	if r.LeaderEpoch >= 0 {
		j.LeaderEpoch = &r.LeaderEpoch
	}
	for _, h := range r.Headers {
		j.Headers = append(j.Headers, jsonHeader{h.Key, h.Value})
	}
	return j
}

func timestampType(r *kgo.Record) string {
	switch r.Attrs.TimestampType() {
	case 0:
		return "CreateTime"
	case 1:
		return "LogAppendTime"
	}
	return "NoTimestampType"
}

// fromJSON reads a line; the topic, the offset and the leader epoch in it are ignored,
// the partition counts only where the producer partitions by hand.
func fromJSON(line []byte) (*kgo.Record, error) {
	j := jsonRecord{Timestamp: -1}
	if err := json.Unmarshal(line, &j); err != nil {
		return nil, fmt.Errorf("not a record in JSON: %w", err)
	}
	r := &kgo.Record{Key: j.Key, Value: j.Value, Partition: j.Partition}
	if j.Timestamp >= 0 {
		r.Timestamp = time.UnixMilli(j.Timestamp)
	}
	for _, h := range j.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
	}
	return r, nil
}
