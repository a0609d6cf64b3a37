package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/memnet"
)

// A newNode is a node that may have a cluster id, and tells others.
type newNode struct {
	host    *memnet.Host
	cluster atomic.Value // string
	f       Founding
}

func newNodes(t *testing.T, ids ...int32) map[int32]*newNode {
	network, nodes := new(memnet.Network), map[int32]*newNode{}
	for _, id := range ids {
		n := &newNode{host: network.AddHost(fmt.Sprintf("node%d", id))}
		n.cluster.Store("")
		n.f = Founding{
			NodeID: id, Voters: votersOf(ids), RequestTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
			NewID: func() string { return fmt.Sprintf("made by %d", id) },
			Dial:  func(ctx context.Context, address string) (net.Conn, error) { return n.host.Dial(ctx, "tcp", address) },
		}
		t.Cleanup(n.host.Kill)
		nodes[id] = n
	}
	return nodes
}

// listen answers who asks for the cluster.
func (n *newNode) listen(t *testing.T) {
	ln, err := n.host.Listen(t.Context(), "tcp", listenAt)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				if frame, err := readFrame(nc); err == nil {
					answer := AppendClusterAnswer(slices.Clone(frame[4:8]), n.cluster.Load().(string))
					nc.Write(append([]byte{0, 0, 0, byte(len(answer))}, answer...))
				}
			}()
		}
	}()
}

// agree asks as a start does, and keeps what comes out.
func (n *newNode) agree(t *testing.T) chan string {
	done := make(chan string, 1)
	go func() {
		id, err := n.f.Agree(t.Context())
		if err != nil {
			id = err.Error()
		} else {
			n.cluster.Store(id)
		}
		done <- id
	}()
	return done
}

// New nodes that name each other become one cluster, in whatever order they come.
func TestFounding(t *testing.T) {
	for _, order := range [][]int32{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}} {
		synctest.Test(t, func(t *testing.T) {
			nodes := newNodes(t, 1, 2, 3)
			var outcomes []chan string
			for _, id := range order {
				nodes[id].listen(t)
				outcomes = append(outcomes, nodes[id].agree(t))
				time.Sleep(5 * time.Second)
			}
			for i, outcome := range outcomes {
				if id := <-outcome; id != "made by 1" {
					t.Errorf("%v: node %d is of cluster %q", order, order[i], id)
				}
			}
		})
	}
}

// A new node takes the id of the cluster that is there, whoever it is; while those are away who know it,
// nobody makes another one.
func TestFoundingBesideACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newNodes(t, 1, 2, 3)
		nodes[1].listen(t) // its disk was replaced
		outcome := nodes[1].agree(t)
		time.Sleep(time.Hour)
		select {
		case id := <-outcome:
			t.Fatalf("node 1 alone says %q", id)
		default:
		}
		nodes[3].cluster.Store("old")
		nodes[3].listen(t)
		if id := <-outcome; id != "old" {
			t.Errorf("node 1 is of cluster %q", id)
		}
	})
}

func TestFoundingIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newNodes(t, 1, 2, 3)
		nodes[2].cluster.Store("a")
		nodes[3].cluster.Store("b")
		nodes[2].listen(t)
		nodes[3].listen(t)
		if id := <-nodes[1].agree(t); !strings.Contains(id, "of cluster a") || !strings.Contains(id, "of cluster b") {
			t.Errorf("between two clusters: %q", id)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		nodes := newNodes(t, 1, 2, 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := nodes[2].f.Agree(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "3@node3:9093") {
			t.Errorf("nobody is there: %v", err)
		}
	})
}

// A voter that takes the connection and does not answer holds nobody up for longer than a request may take.
func TestFoundingPastASilentVoter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := newNodes(t, 1, 2, 3)
		if _, err := nodes[3].host.Listen(t.Context(), "tcp", listenAt); err != nil {
			t.Fatal(err)
		}
		nodes[2].listen(t)
		began := time.Now()
		if id := <-nodes[1].agree(t); id != "made by 1" || time.Since(began) > 2*time.Second {
			t.Errorf("%q after %v", id, time.Since(began))
		}
	})
}
