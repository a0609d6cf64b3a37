package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// A Voter is an item of controller.quorum.voters: who votes on the metadata, and where it listens for
// the others.
type Voter struct {
	ID   int32
	Host string
	Port int
}

// Addr is host:port.
func (v Voter) Addr() string { return net.JoinHostPort(v.Host, strconv.Itoa(v.Port)) }

// QuorumVoters reads controller.quorum.voters.
func (b *Broker) QuorumVoters() ([]Voter, error) {
	const key = "controller.quorum.voters"
	var voters []Voter
	for _, item := range b.List(key) {
		id, address, found := strings.Cut(strings.TrimSpace(item), "@")
		n, err := strconv.ParseInt(id, 10, 32)
		host, port, addressErr := parseHostPort(address)
		if !found || err != nil || n < 0 || addressErr != nil || port == 0 || host == "" {
			return nil, fmt.Errorf("%s: %q: want id@host:port", key, item)
		}
		if slices.ContainsFunc(voters, func(v Voter) bool { return v.ID == int32(n) }) {
			return nil, fmt.Errorf("%s=%s: two voters have the id %d", key, strings.Join(b.List(key), ","), n)
		}
		voters = append(voters, Voter{int32(n), host, port})
	}
	return voters, nil
}

// checkVoters holds what a node needs that votes beside others.
func (b *Broker) checkVoters() error {
	voters, err := b.QuorumVoters()
	if err != nil || len(voters) < 2 {
		return err
	}
	node := int32(b.Int("node.id"))
	if !slices.ContainsFunc(voters, func(v Voter) bool { return v.ID == node }) {
		return nil
	}
	listeners, err := b.Listeners()
	if err == nil && !slices.ContainsFunc(listeners, func(l Listener) bool { return l.Controller }) {
		err = fmt.Errorf("controller.quorum.voters=%s: the other voters have to reach node.id=%d: want a listener in listeners that controller.listener.names names",
			strings.Join(b.List("controller.quorum.voters"), ","), node)
	}
	return err
}
