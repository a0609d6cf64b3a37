package broker

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/leader"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/peer"
	"github.com/gregor-kafka/gregor/internal/replica"
)

// followOptions are how this broker fetches from the leaders of partitions that it follows, which it does in a cluster.
func (b *Broker) followOptions(c *config.Broker) replica.FollowOptions {
	if b.voter == nil {
		return replica.FollowOptions{}
	}
	return replica.FollowOptions{
		Leader:            func(id int32, fetcher int) replica.Leader { return b.leader(c, id, fetcher) },
		BrokerEpoch:       func() int64 { return b.directories.epoch },
		FetchersPerLeader: c.Int("num.replica.fetchers"),
		MaxWait:           c.Milliseconds("replica.fetch.wait.max.ms"),
		MinBytes:          c.Int("replica.fetch.min.bytes"),
		MaxBytes:          c.Int("replica.fetch.response.max.bytes"),
		PartitionMaxBytes: c.Int("replica.fetch.max.bytes"),
		Backoff:           c.Milliseconds("replica.fetch.backoff.ms"),
	}
}

// alterPartition is how leaders ask for other replicas in sync, nil on the only node.
func (b *Broker) alterPartition() func(context.Context, []replica.ISRRequest) ([]replica.ISRAnswer, error) {
	if node, ok := b.controller.(*clusterNode); ok {
		return node.AlterPartition
	}
	return nil
}

// leader is another broker as a fetcher of this one reaches it.
func (b *Broker) leader(c *config.Broker, id int32, fetcher int) replica.Leader {
	client := peer.New(peer.Options{
		Dial: func(ctx context.Context) (net.Conn, error) {
			address, err := addressOf(b.replicas.Image(), id, interBrokerListener(c))
			if err != nil {
				return nil, err
			}
			return b.world.Network.Dial(ctx, "tcp", address)
		},
		ClientID:  fmt.Sprintf("broker-%d-fetcher-%d", b.logs.NodeID(), fetcher),
		Timeout:   c.Milliseconds("replica.socket.timeout.ms"),
		AnswerMax: c.Int("replica.fetch.response.max.bytes") + c.Int("socket.request.max.bytes"), // one batch may be larger than what is asked for
	})
	return leader.New(client, b.logs.NodeID(), func() int16 { return b.replicas.Image().Feature(metadata.MetadataVersion) })
}

// rackAware reports whether replica.selector.class is Kafka's class that looks at racks. Others are code that is not here.
func rackAware(c *config.Broker) bool {
	class := c.String("replica.selector.class")
	return class[strings.LastIndexByte(class, '.')+1:] == "RackAwareReplicaSelector"
}

// interBrokerListener is the name of the listeners by which brokers reach each other.
func interBrokerListener(c *config.Broker) string {
	if name := c.String("inter.broker.listener.name"); name != "" {
		return name
	}
	return c.String("security.inter.broker.protocol")
}

// addressOf returns host:port of a broker's listener.
func addressOf(img *metadata.Image, id int32, listener string) (string, error) {
	broker := img.Broker(id)
	if broker == nil {
		return "", fmt.Errorf("broker %d is not registered", id)
	}
	i := slices.IndexFunc(broker.Endpoints, func(e metadata.BrokerEndpoint) bool { return e.Name == listener })
	if i < 0 {
		return "", fmt.Errorf("broker %d has no listener %s", id, listener)
	}
	e := &broker.Endpoints[i]
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), nil
}
