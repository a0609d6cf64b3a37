package quorum

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gregor-kafka/gregor/internal/memnet"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// A linkedNode is a voter with a place on a network, where others say hello to it.
type linkedNode struct {
	*voterNode
	id      int32
	host    *memnet.Host
	options func(*Options)
}

// directoryOf is the id of a node's metadata directory.
func directoryOf(id int32) uuid.UUID { return uuid.UUID{15: byte(id)} }

// listenAt is the controller listener of every node.
const listenAt = ":9093"

// newLinked returns nodes that reach each other over a network.
func newLinked(t *testing.T, ids ...int32) (*cluster, map[int32]*linkedNode) {
	c := newCluster(t, ids...)
	network, nodes := new(memnet.Network), map[int32]*linkedNode{}
	for _, id := range ids {
		host := network.AddHost(fmt.Sprintf("node%d", id))
		t.Cleanup(host.Kill)
		nodes[id] = &linkedNode{voterNode: c.nodes[id], id: id, host: host, options: func(*Options) {}}
	}
	return c, nodes
}

func votersOf(ids []int32) (voters []Voter) {
	for _, id := range ids {
		voters = append(voters, Voter{ID: id, Address: fmt.Sprintf("node%d%s", id, listenAt)})
	}
	return voters
}

// start opens the quorum of a node and greets who comes.
func (n *linkedNode) start(c *cluster) {
	c.t.Helper()
	o := options(n.fs, n.dir)
	o.NodeID, o.SnapshotBytes = n.id, 4<<10
	o.Peers = &Peers{
		Voters: votersOf(c.ids), DirectoryID: directoryOf(n.id), SilenceMax: 200 * time.Millisecond,
		Dial: func(ctx context.Context, address string) (net.Conn, error) { return n.host.Dial(ctx, "tcp", address) },
	}
	n.options(&o)
	q, err := Open(o)
	if err != nil {
		c.t.Fatal(err)
	}
	n.q = q
	n.listen(c)
}

// listen lets others reach the node.
func (n *linkedNode) listen(c *cluster) {
	c.t.Helper()
	ln, err := n.host.Listen(c.t.Context(), "tcp", listenAt)
	if err != nil {
		c.t.Fatal(err)
	}
	q := n.q
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go greet(q, nc)
		}
	}()
}

// greet is what a listener does with the first request of a connection.
func greet(q *Quorum, nc net.Conn) {
	defer nc.Close()
	frame, err := readFrame(nc)
	if err != nil {
		return
	}
	const head = 2 + 2 + 4 // key, version, correlation
	client := int(binary.BigEndian.Uint16(frame[head:]))
	hello, err := ParseHello(frame[head+2+client:])
	if err == nil {
		err = q.Greet(hello)
	}
	answer := AppendHelloAnswer(slices.Clone(frame[4:head]), err)
	nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...))
	if err == nil {
		q.ServeVoter(context.Background(), nc)
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, frame)
	return frame, err
}

// kill ends a node as SIGKILL does.
func (n *linkedNode) kill(c *cluster) {
	c.t.Helper()
	n.host.Kill()
	disk := n.fs.Kill()
	_ = n.q.Close() // it reaches nobody any more
	n.q, n.voterNode.fs = nil, disk
}

// Three voters agree over connections: entries, votes, snapshots, and whoever was away.
func TestVotersOverConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := newLinked(t, 1, 2, 3)
		defer c.stop()
		for _, n := range nodes {
			n.start(c)
		}
		first := c.leader()
		c.createTopics(first, 0, 20)
		c.awaitSame(first)

		follower := c.ids[first%3]
		nodes[follower].kill(c)
		mustPropose(t, c.nodes[first].q, &metadata.RemoveTopicRecord{TopicID: topicID(19)})
		c.createTopics(first, 20, 700) // more than stays behind a snapshot
		c.await("the log before the snapshot is gone", func() bool { return c.nodes[first].q.log.start() > 60 })
		nodes[follower].start(c)
		c.leader()
		c.awaitSame(first)

		nodes[first].kill(c)
		second := c.leader()
		c.createTopics(second, 700, 705)
		nodes[first].start(c)
		c.leader()
		c.awaitSame(second)
	})
}

// A listener that was cut off and is back is found again, and nothing of the old connections stays.
func TestLinkIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := newLinked(t, 1, 2, 3)
		defer c.stop()
		for _, n := range nodes {
			n.start(c)
		}
		leader := c.leader()
		for round := range 3 {
			follower := nodes[c.ids[leader%3]]
			follower.host.Kill()
			mustPropose(t, c.nodes[leader].q, topicRecords(round)...)
			follower.listen(c)
			c.leader()
			c.awaitSame(leader)
		}
	})
}

// A stranger is refused, with the reason on both sides: a node of another cluster, a reformatted disk,
// a second node with the same id, and logs that are no copies of one.
func TestGreet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := newLinked(t, 1, 2, 3)
		defer c.stop()
		for _, n := range nodes {
			n.start(c)
		}
		leader := c.leader()
		c.createTopics(leader, 0, 200)
		c.await("a snapshot", func() bool { return c.nodes[leader].q.anchor().index > 0 })
		q := c.nodes[leader].q
		good := Hello{ClusterID: q.opts.ClusterID, From: Identity{NodeID: leader%3 + 1}, To: q.identity(), anchor: q.anchor()}
		f := func(want string, change func(*Hello)) {
			t.Helper()
			h := good
			change(&h)
			err := q.Greet(h)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%+v: %v, want %q", h, err, want)
			}
		}
		f("", func(*Hello) {})
		f("", func(h *Hello) { h.To.DirectoryID = uuid.Zero })
		f("of cluster \"elsewhere\"", func(h *Hello) { h.ClusterID = "elsewhere" })
		f("looks for node 9", func(h *Hello) { h.To.NodeID = 9 })
		f("looks for node", func(h *Hello) { h.To.DirectoryID = directoryOf(9) })
		f("two nodes have the id", func(h *Hello) { h.From = q.identity() })
		f("must be copies of one", func(h *Hello) { h.anchor.index++ })
		f("", func(h *Hello) { h.anchor = anchorAt{offset: 1 << 40, index: 7} })
		f("", func(h *Hello) { h.anchor = anchorAt{} }) // of a log that has no snapshot
	})
}

// A lockedLog is what a node has logged, while it goes on.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A voter that is refused says so once, not at each of raft's attempts.
func TestRefusalIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := newLinked(t, 1, 2, 3)
		defer c.stop()
		var log lockedLog
		nodes[3].options = func(o *Options) {
			o.ClusterID = "elsewhere"
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}
		for _, n := range nodes {
			n.start(c)
		}
		c.await("a leader of the other two", func() bool {
			a, _ := nodes[1].q.Leader()
			b, _ := nodes[2].q.Leader()
			return a == b && a != nobody
		})
		time.Sleep(time.Minute)
		if n := strings.Count(log.String(), "does not talk to this one"); n != 2 {
			t.Errorf("%d lines of refusals in a minute, want one for each voter that refuses:\n%s", n, log.String())
		}
		if lines := strings.Count(log.String(), "\n"); lines > 12 {
			t.Errorf("%d lines in a minute:\n%s", lines, log.String())
		}
		if id, _ := nodes[3].q.Leader(); id != nobody {
			t.Errorf("the node of another cluster follows %d", id)
		}
	})
}

// Closing ends a dial that hangs, and connections that raft has not taken.
func TestLinkCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(1, func(ctx context.Context, _ int32) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		dialed := make(chan error)
		go func() {
			_, err := l.Dial(addressOf(2), time.Hour)
			dialed <- err
		}()
		near, far := net.Pipe()
		served := make(chan struct{})
		go func() {
			l.serve(t.Context(), far)
			close(served)
		}()
		synctest.Wait()
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if err := <-dialed; !errors.Is(err, context.Canceled) {
			t.Errorf("a dial of a closed link: %v", err)
		}
		<-served
		if _, err := near.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a connection of a closed link: %v", err)
		}
		if _, err := l.Accept(); err != io.EOF {
			t.Errorf("Accept of a closed link: %v", err)
		}
		l.serve(t.Context(), far) // at once
	})
}

func TestParseHello(t *testing.T) {
	want := Hello{ClusterID: "abc", From: Identity{1, directoryOf(1)}, To: Identity{2, directoryOf(2)}, anchor: anchorAt{300, 4}}
	body := want.appendTo(nil)
	if got, err := ParseHello(body); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range body {
		if _, err := ParseHello(body[:n]); !errors.Is(err, errHello) {
			t.Errorf("%d of %d bytes: %v", n, len(body), err)
		}
	}
	if _, err := ParseHello(append(body, 0)); !errors.Is(err, errHello) {
		t.Errorf("a byte too many: %v", err)
	}
	long := Hello{ClusterID: strings.Repeat("x", 5000)}
	if got, err := ParseHello(long.appendTo(nil)); err != nil || len(got.ClusterID) != helloMax {
		t.Errorf("a long cluster id: %d, %v", len(got.ClusterID), err)
	}
}

func FuzzParseHello(f *testing.F) {
	f.Add(Hello{ClusterID: "abc"}.appendTo(nil))
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := ParseHello(body)
		if err == nil && !bytes.Equal(h.appendTo(nil), body) {
			t.Errorf("%x is read as %+v", body, h)
		}
	})
}

// An answer that is none ends the attempt, and costs no more memory than a refusal may.
func TestExchange(t *testing.T) {
	f := func(answer []byte, want string) {
		t.Helper()
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			defer far.Close()
			if _, err := readFrame(far); err == nil {
				far.Write(answer)
			}
		}()
		err := exchange(near, Hello{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%x: %v, want %q", answer, err, want)
		}
	}
	f([]byte{0, 0, 0, 6, 0, 0, 0, 1, 0, 0}, "")
	f([]byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 2, 'n', 'o'}, "refuses: no")
	f([]byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 2, 'n'}, "unexpected EOF")
	f([]byte{0, 0, 0, 6, 0, 0, 0, 2, 0, 0}, "with something else")
	f([]byte{0, 0, 0, 7, 0, 0, 0, 1, 0, 0}, "with something else")
	f([]byte{0, 0, 0xff, 6, 0, 0, 0, 1, 0xff, 0}, "with something else")
	f([]byte("HTTP/1.1 400 Bad Request"), "with something else")
	f(nil, "EOF")
}

// A voter whose disk fails says nothing more to the others, and ends; they go on.
func TestVoterWithAFailedDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := newLinked(t, 1, 2, 3)
		defer c.stop()
		failed := make(chan error, 3)
		for _, n := range nodes {
			n.options = func(o *Options) { o.OnFailure = func(err error) { failed <- err } }
			n.start(c)
		}
		leader := c.leader()
		broken := nodes[c.ids[leader%3]]
		broken.fs.SetHook(func(op vfs.Op) error {
			if op.Kind.Changes() {
				return syscall.EIO
			}
			return nil
		})
		nodes[leader].kill(c) // the next election begins with a new epoch, which it cannot write
		if err := <-failed; !errors.Is(err, syscall.EIO) {
			t.Errorf("the broken voter ended with %v", err)
		}
		if err := broken.q.Close(); err != nil && !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
		broken.q = nil
		nodes[leader].start(c)
		c.createTopics(c.leader(), 0, 3)
	})
}
