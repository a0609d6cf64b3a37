// Package gregor embeds a Kafka broker in a Go program.
//
//	b, err := gregor.Start(ctx, gregor.Options{DataDir: "data"})
//	if err != nil {
//		return err
//	}
//	defer b.Close(context.Background())
//	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
//
// For tests there is the package gregortest, which also cleans up.
package gregor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/gregor-kafka/gregor/internal/broker"
	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/vfs"
)

// Defaults of Options.
const (
	DefaultDataDir = "gregor-data"
	DefaultListen  = "127.0.0.1:9092"
)

// Options configure a broker. The zero value is a broker on DefaultListen with its data
// in DefaultDataDir.
type Options struct {
	ConfigFile string   // Kafka's server.properties; "" for none
	Set        []string // key=value, each wins over the file
	DataDir    string   // log.dirs; wins over Set
	Listen     string   // host:port; port 0 takes a free one
	Advertise  string   // host:port told to clients; "" for what Listen says
	HTTP       string   // host:port of /metrics and /health; "" for none on TCP

	// What Start otherwise refuses, see "Whose directory is it" in the README. They are for one
	// start, not for every.
	TakeOverAsOnlyVoter bool // decide alone although the quorum has other voters, who never come back
	AcceptMetadataLoss  bool // go on with what is left of the metadata
	PutAsideStrays      bool // rename every partition that the metadata does not know to -stray

	Logger *slog.Logger // nil for silence

	// The machine that the broker runs on; nil is this one. On another file system there is no socket
	// for gregor's own commands.
	FS      vfs.FS
	Network Network
	// Random returns randomness for a purpose. The same purpose is the same stream, which goes on; many read
	// it at once.
	Random func(purpose string) io.Reader
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

// A Broker is running until Close. Its methods may be called from any goroutine.
type Broker struct{ b *broker.Broker }

// Start opens the data directories and serves clients when it returns. ctx bounds only
// the start.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	b, err := broker.Start(ctx, broker.Options{Config: c, Logger: o.Logger, World: broker.World{FS: o.FS, Network: o.Network, Random: o.Random}})
	if err != nil {
		return nil, err
	}
	return &Broker{b}, nil
}

// config reads the file and lays the other options over it. Warnings go to the logger.
func (o Options) config() (*config.Broker, error) {
	var file []byte
	source := "defaults"
	if o.ConfigFile != "" {
		var err error
		if file, err = os.ReadFile(o.ConfigFile); err != nil {
			return nil, err
		}
		source = o.ConfigFile
	}
	c, _, err := config.Parse(bytes.NewReader(file), source, o.overrides())
	if err != nil {
		return nil, err
	}
	c, warnings, err := config.Parse(bytes.NewReader(file), source, append(ownDefaults(c), o.overrides()...))
	for _, w := range warnings {
		o.Logger.Warn(w)
	}
	return c, err
}

// ownDefaults are settings for what Kafka would demand: where data is and where clients
// come in.
func ownDefaults(c *config.Broker) []string {
	var set []string
	if !c.IsSet("log.dirs") && !c.IsSet("log.dir") {
		set = append(set, "log.dirs="+DefaultDataDir)
	}
	if !c.IsSet("listeners") {
		set = append(set, "listeners=PLAINTEXT://"+DefaultListen)
	}
	return set
}

func (o Options) overrides() []string {
	set := append([]string(nil), o.Set...)
	if o.DataDir != "" {
		set = append(set, "log.dirs="+o.DataDir)
	}
	if o.Listen != "" {
		set = append(set, "listeners=PLAINTEXT://"+o.Listen)
	}
	if o.HTTP != "" {
		set = append(set, "gregor.http.listener="+o.HTTP)
	}
	for key, permitted := range map[string]bool{
		"gregor.take.over.as.only.voter": o.TakeOverAsOnlyVoter, "gregor.accept.metadata.loss": o.AcceptMetadataLoss, "gregor.put.aside.strays": o.PutAsideStrays,
	} {
		if permitted {
			set = append(set, key+"=true")
		}
	}
	if o.Advertise != "" {
		set = append(set, "advertised.listeners=PLAINTEXT://"+o.Advertise)
	}
	return set
}

// Addr is the host:port the broker listens on.
func (b *Broker) Addr() string { return b.b.Addr() }

// AdvertisedAddr is the host:port that clients are told.
func (b *Broker) AdvertisedAddr() string { return b.b.AdvertisedAddr() }

// HTTPAddr is the host:port of /metrics and /health, or "" if they are not served on TCP. They
// are on the socket gregor.sock in the first data directory in every case.
func (b *Broker) HTTPAddr() string { return b.b.HTTPAddr() }

// DataDirs are the absolute paths of the data directories.
func (b *Broker) DataDirs() []string {
	var dirs []string
	for _, d := range b.b.DataDirs() {
		if abs, err := filepath.Abs(d); err == nil {
			d = abs
		}
		dirs = append(dirs, d)
	}
	return dirs
}

// ClusterID is the id in meta.properties, the same for the life of the data.
func (b *Broker) ClusterID() string { return b.b.ClusterID() }

// NodeID is the broker's number in its cluster.
func (b *Broker) NodeID() int32 { return b.b.NodeID() }

// Done is closed when the broker cannot go on, for example because its last data
// directory failed; Close then tells why.
func (b *Broker) Done() <-chan struct{} { return b.b.Done() }

// Close stops serving, flushes and closes every log and marks the directories clean. If
// ctx ends first the directories stay as after a crash: nothing acknowledged and flushed
// is lost, but the next start has to recover.
func (b *Broker) Close(ctx context.Context) error {
	err := b.b.Close(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stopped before every log was closed: %w", err)
	}
	return err
}
