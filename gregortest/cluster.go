package gregortest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor"
	"github.com/gregor-kafka/gregor/internal/memnet"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/vfs"
)

// A Cluster is brokers in memory: each has a disk and a place on a network that are nobody else's, so
// that it can be killed, and its disk can crash, without harm to anything outside. In a bubble of
// testing/synctest all of it goes by the bubble's time.
type Cluster struct {
	network memnet.Network
	clients *memnet.Host
	nodes   []*Node
}

// NewCluster starts n brokers, which live as long as the test. Each is a controller too, and votes on the metadata. The
// options are those of every broker; DataDir is a path on its own disk. Of several brokers replicas follow, leaders and the
// controller fail over; what a cluster of Kafka has besides is not all there yet.
func NewCluster(tb testing.TB, n int, options ...Option) *Cluster {
	tb.Helper()
	if n < 1 {
		tb.Fatalf("gregortest.NewCluster: %d brokers: want at least one", n)
	}
	tb.Cleanup(record.ForgetZstd) // behind the stop of all nodes
	c := &Cluster{}
	c.clients = c.network.AddHost("clients")
	var voters []string
	for id := 1; id <= n; id++ {
		b := &Node{tb: tb, id: id, host: c.network.AddHost(fmt.Sprintf("broker%d", id)), disk: vfs.NewMem()}
		voters = append(voters, fmt.Sprintf("%d@%s", id, b.address(controllerPort)))
		c.nodes = append(c.nodes, b)
	}
	for _, b := range c.nodes {
		b.options = append([]Option{DataDir("/data")}, b.settings(voters)...)
		b.options = append(b.options, options...)
		tb.Cleanup(b.Stop)
	}
	c.Start()
	return c
}

// settings are those that make a node one of the cluster.
func (n *Node) settings(voters []string) []Option {
	set := []Option{Set(fmt.Sprintf("node.id=%d", n.id)), Set("listeners=PLAINTEXT://" + n.addr())}
	if len(voters) > 1 {
		set = append(set, Set("gregor.preview.cluster=true"), Set("process.roles=broker,controller"), Set("controller.quorum.voters="+strings.Join(voters, ",")),
			Set("controller.listener.names=CONTROLLER"), Set("listeners=PLAINTEXT://"+n.addr()+",CONTROLLER://"+n.address(controllerPort)))
	}
	return set
}

// Start starts all brokers that do not run, at the same time: those of a new cluster wait for each other.
func (c *Cluster) Start() {
	tb := c.nodes[0].tb
	tb.Helper()
	errs := make(chan error)
	for _, n := range c.nodes {
		go func() { errs <- n.start() }()
	}
	for range c.nodes {
		if err := <-errs; err != nil {
			tb.Error(err)
		}
	}
	if tb.Failed() {
		tb.FailNow()
	}
}

// Node returns a broker by its node id; the first is 1.
func (c *Cluster) Node(id int) *Node { return c.nodes[id-1] }

// Addrs are the host:port of all brokers, for kgo.SeedBrokers.
func (c *Cluster) Addrs() []string {
	var list []string
	for _, b := range c.nodes {
		list = append(list, b.addr())
	}
	return list
}

// Dial connects to a broker; clients need it, since nobody else reaches the cluster's network. It is
// for kgo.Dialer.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return c.clients.Dial(ctx, network, address)
}

// Clients stands for all that dials with Cluster.Dial, where nodes are named by their ids.
const Clients = 0

// host is the name of a node's machine, or of the clients'.
func (c *Cluster) host(id int) string {
	h := c.clients
	if id != Clients {
		h = c.Node(id).host
	}
	name, _ := h.Name()
	return name
}

// Partition cuts nodes off from all other nodes and from clients, in both directions, until Heal. What is
// sent meanwhile arrives then, if its connection is still open.
func (c *Cluster) Partition(ids ...int) {
	var names []string
	for _, id := range ids {
		names = append(names, c.host(id))
	}
	c.network.Partition(names...)
}

// Cut lets nothing get from one node to another until Heal; the other direction goes on.
func (c *Cluster) Cut(from, to int) { c.network.Link(c.host(from), c.host(to)).Cut() }

// Delay lets what one node sends another arrive as much later as delay returns, in order; nil is at once.
func (c *Cluster) Delay(from, to int, delay func() time.Duration) {
	c.network.Link(c.host(from), c.host(to)).SetDelay(delay)
}

// Heal undoes Partition and Cut.
func (c *Cluster) Heal() { c.network.Heal() }

// A Node is a broker of a Cluster with its machine. Its methods are for one goroutine at a time.
type Node struct {
	tb      testing.TB
	id      int
	host    *memnet.Host
	options []Option

	disk    *vfs.Mem // as the process uses it that runs, or would run
	process *process // nil: none runs
}

// A process is one run of a broker.
type process struct {
	*gregor.Broker
	killed atomic.Bool // nobody is interested in what it logs
}

// Ports of every node.
const (
	listenPort     = "9092"
	controllerPort = "9093"
)

func (n *Node) addr() string { return n.address(listenPort) }

func (n *Node) address(port string) string {
	name, _ := n.host.Name()
	return net.JoinHostPort(name, port)
}

// Broker returns the broker that runs, or nil.
func (n *Node) Broker() *gregor.Broker {
	if n.process == nil {
		return nil
	}
	return n.process.Broker
}

// Disk is what the broker keeps its data on. After Kill and Crash it is another one. A hook on it may
// wait in a sync, for a slow disk by the bubble's time; not in a write, across which a log holds a
// mutex: time stands still while somebody waits for that.
func (n *Node) Disk() *vfs.Mem { return n.disk }

// Start starts the broker with what is on the disk, and fails the test when it does not start.
func (n *Node) Start() {
	n.tb.Helper()
	if n.process != nil {
		n.tb.Fatal("gregortest: the broker runs already")
	}
	if err := n.start(); err != nil {
		n.tb.Fatal(err)
	}
}

func (n *Node) start() error {
	if n.process != nil {
		return nil
	}
	p := &process{}
	o := defaults(n.tb)
	o.Logger = slog.New(&processLog{Handler: o.Logger.Handler(), killed: &p.killed})
	o.FS, o.Network, o.Listen = n.disk, &processNetwork{n.host, &p.killed}, ""
	for _, option := range n.options {
		option(&o)
	}
	if random := o.Random; random != nil {
		o.Random = func(purpose string) io.Reader { return random(n.addr() + " " + purpose) }
	}
	b, err := gregor.Start(n.tb.Context(), o)
	if err != nil {
		return err
	}
	p.Broker = b
	n.process = p
	return nil
}

// Stop stops the broker cleanly, if it runs.
func (n *Node) Stop() {
	n.tb.Helper()
	if n.process == nil {
		return
	}
	if err := closeBroker(n.process.Broker); err != nil {
		n.tb.Error(err)
	}
	n.process = nil
}

// Kill ends the broker, if it runs, as SIGKILL does: connections break, nothing more is written, and what was written
// stays for the next start.
func (n *Node) Kill() {
	if n.process == nil {
		return
	}
	n.process.killed.Store(true)
	n.disk = n.disk.Kill()
	n.host.Kill()
	_ = closeBroker(n.process.Broker) // ends its goroutines; it reaches neither disk nor clients
	n.process = nil
}

// Crash ends the broker as a loss of power does: of what was not flushed the disk keeps what rng picks, or
// nothing if rng is nil. (vfs.Mem.CrashClone)
func (n *Node) Crash(rng *rand.Rand) {
	n.Kill()
	n.disk = n.disk.CrashClone(rng)
}

// A processNetwork is that of a host until its process is killed.
type processNetwork struct {
	*memnet.Host
	killed *atomic.Bool
}

// Dial implements gregor.Network.
func (n *processNetwork) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if n.killed.Load() {
		return nil, net.ErrClosed
	}
	return n.Host.Dial(ctx, network, address)
}

// Listen implements gregor.Network.
func (n *processNetwork) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if n.killed.Load() {
		return nil, net.ErrClosed
	}
	return n.Host.Listen(ctx, network, address)
}

// A processLog is silent once its process was killed.
type processLog struct {
	slog.Handler
	killed *atomic.Bool
}

func (l *processLog) Enabled(ctx context.Context, level slog.Level) bool {
	return !l.killed.Load() && l.Handler.Enabled(ctx, level)
}

func (l *processLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &processLog{l.Handler.WithAttrs(attrs), l.killed}
}

func (l *processLog) WithGroup(name string) slog.Handler {
	return &processLog{l.Handler.WithGroup(name), l.killed}
}
