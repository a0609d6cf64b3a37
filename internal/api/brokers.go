package api

import (
	"github.com/gregor-kafka/gregor/internal/metadata"
)

// operationsUnknown is the answer of authorized operations that were not asked for.
const operationsUnknown = -1 << 31

// Without an authorizer everybody may do all that a resource knows. One bit for each
// number of AclOperation.
const (
	topicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11 // read write create delete alter describe describe-configs alter-configs
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12       // create alter describe cluster-action describe-configs alter-configs idempotent-write
)

// operations returns all operations when they were asked for.
func operations(asked bool, all int32) int32 {
	if asked {
		return all
	}
	return operationsUnknown
}

// endpoint returns a broker's address on a listener; ok is false when it has none there.
func endpoint(b *metadata.Broker, listener string) (host string, port int32, ok bool) {
	for i := range b.Endpoints {
		if e := &b.Endpoints[i]; e.Name == listener {
			return e.Host, int32(e.Port), true
		}
	}
	return "", 0, false
}

// controllerID is the broker that clients send what is for the controller. Every broker
// takes that, so each names itself.
func (s *Server) controllerID(img *metadata.Image) int32 {
	if img.Broker(s.NodeID).Active() {
		return s.NodeID
	}
	for _, b := range img.Brokers() {
		if b.Active() {
			return b.ID
		}
	}
	return -1
}

// offline returns the replicas whose broker is fenced or not registered, or has lost the directory.
func offline(img *metadata.Image, p *metadata.Partition) []int32 {
	var dead []int32
	for _, id := range p.Replicas {
		if !img.Online(p, id) {
			dead = append(dead, id)
		}
	}
	return dead
}
