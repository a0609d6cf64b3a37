package api

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/wire"
)

const (
	testNode     = 1
	testListener = "PLAINTEXT"
)

// ask sends a request through Handle, both ways as bytes.
func ask[A any, PA interface {
	*A
	kmsg.Response
}](t *testing.T, s *Server, version int16, req kmsg.Request) PA {
	t.Helper()
	req.SetVersion(version)
	r := &Request{Key: req.Key(), Version: version, Listener: testListener, Body: req.AppendTo(nil)}
	w := new(wire.Response)
	if err := s.Handle(context.Background(), r, w); err != nil {
		t.Fatal(err)
	}
	answer := PA(new(A))
	answer.SetVersion(version)
	if err := answer.ReadFrom(w.Buf); err != nil {
		t.Fatalf("answer of %s version %d: %v", kmsg.NameForKey(req.Key()), version, err)
	}
	return answer
}

// imageServer answers from the image that records add up to, with server.properties.
func imageServer(t *testing.T, properties string, records ...metadata.Record) *Server {
	t.Helper()
	c, _, err := config.Parse(strings.NewReader(properties), "server.properties", nil)
	if err != nil {
		t.Fatal(err)
	}
	img, _, err := metadata.NewImage("test-cluster").Apply(records, int64(len(records)), 1)
	if err != nil {
		t.Fatal(err)
	}
	return New(Deps{
		NodeID: testNode, ClusterID: img.ClusterID,
		Config:   func() *config.Broker { return c },
		Metadata: func() *metadata.Image { return img },
	})
}

func testBroker(id int32, fenced bool, listeners ...string) metadata.Record {
	r := metadata.NewRegisterBrokerRecord()
	r.BrokerID, r.Fenced = id, fenced
	for _, name := range listeners {
		r.EndPoints = append(r.EndPoints, metadata.BrokerEndpoint{Name: name, Host: "host" + name, Port: uint16(9000 + id)})
	}
	return r
}

func testTopic(name string, id byte, partitions ...*metadata.PartitionRecord) []metadata.Record {
	t := metadata.NewTopicRecord()
	t.Name, t.TopicID = name, uuid.UUID{15: id}
	records := []metadata.Record{t}
	for i, p := range partitions {
		p.PartitionID, p.TopicID = int32(i), t.TopicID
		records = append(records, p)
	}
	return records
}

func testPartition(leader int32, replicas ...int32) *metadata.PartitionRecord {
	p := metadata.NewPartitionRecord()
	p.Leader, p.LeaderEpoch, p.PartitionEpoch = leader, 3, 4
	p.Replicas, p.ISR = replicas, replicas
	p.Directories = make([]uuid.UUID, len(replicas))
	return p
}

func testConfig(kind int8, resource, key, value string) metadata.Record {
	c := metadata.NewConfigRecord()
	c.ResourceType, c.ResourceName, c.Name, c.Value = kind, resource, key, &value
	return c
}
