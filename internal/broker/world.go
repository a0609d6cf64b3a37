package broker

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/vfs"
)

// A World is what a broker needs of the machine that it runs on. Brokers of one process share what
// their worlds share, and nothing else. What is nil is the host's. Time is not in it: in a bubble of
// testing/synctest a broker has the bubble's.
type World struct {
	FS      vfs.FS // of the log directories; gregor.sock is in the host's only
	Network Network

	// Random returns randomness for a purpose: all ids, the placement of replicas, names and pauses come
	// from it. The same purpose is the same stream of bytes, which goes on, also for the broker that
	// starts next in this world. It never fails, and many read it at once. (random.Seeded)
	Random func(purpose string) io.Reader

	// Descriptors returns how many descriptors the broker may have, files and connections together.
	Descriptors func() (int, error)
}

// A Network is how a broker and its clients reach each other. Listen and Dial are those of
// net.ListenConfig and net.Dialer, LookupNetIP that of net.Resolver.
type Network interface {
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Name is what others call this machine.
	Name() (string, error)
}

// descriptorsElsewhere is more than a broker needs whose files are not the host's.
const descriptorsElsewhere = 1 << 20

func (w World) complete() World {
	if w.Descriptors == nil {
		w.Descriptors = hostDescriptors
		if w.FS != nil && w.Network != nil {
			w.Descriptors = func() (int, error) { return descriptorsElsewhere, nil }
		}
	}
	if w.Random == nil {
		w.Random = random.Host
	}
	if w.Network == nil {
		w.Network = hostNetwork{}
	}
	return w
}

// fileSystem is that of the log directories; giveBack gives back descriptors when the host has none left.
func (w World) fileSystem(giveBack func()) vfs.FS {
	if w.FS == nil {
		return vfs.OnShortage(vfs.OS, giveBack)
	}
	return vfs.OnShortage(w.FS, giveBack)
}

// hostNetwork is the network of the host.
type hostNetwork struct{}

// Listen implements Network.
func (hostNetwork) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, network, address)
}

// Dial implements Network.
func (hostNetwork) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// LookupNetIP implements Network.
func (hostNetwork) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, network, host)
}

// Name implements Network.
func (hostNetwork) Name() (string, error) { return os.Hostname() }

// hostDescriptors raises the limit of open files as far as the process may, and returns it. (Go's
// runtime raises it too, for programs that are made with os.)
func hostDescriptors() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("limit of open files: %w", err)
	}
	if limit.Cur < limit.Max {
		raised := limit
		raised.Cur = raised.Max
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
			limit = raised
		}
	}
	return int(min(uint64(limit.Cur), 1<<30)), nil
}
