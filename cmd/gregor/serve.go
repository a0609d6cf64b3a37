package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gregor-kafka/gregor"
)

// closeTimeout bounds a stop, whatever is going on. What is not written by then the next start
// recovers.
const closeTimeout = 10 * time.Second

func serveCommand() *cobra.Command {
	var o gregor.Options
	var level string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a broker",
		Long: `Run a broker. It needs no arguments: data goes to ./gregor-data (made if missing) and
clients are served on 127.0.0.1:9092. Interrupt or terminate it for a clean stop.

A data directory that Apache Kafka wrote is opened in place (stop Kafka first). One that is not this
node's alone, or has lost metadata, is refused, before anything is written; the message says what
is wrong and which of the last three flags goes on all the same.`,
		Args: cobra.NoArgs,
		Example: `  gregor serve
  gregor serve --data /var/lib/gregor --listen 0.0.0.0:9092 --advertise broker.example:9092
  gregor serve --config server.properties --set num.partitions=4`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			started := time.Now()
			if err := logTo(cmd.ErrOrStderr(), level, &o); err != nil {
				return err
			}
			limitMemory()
			b, err := start(cmd.Context(), o)
			if err != nil {
				return err
			}
			banner(cmd.OutOrStdout(), b, time.Since(started))
			return waitAndClose(cmd.Context(), b)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.ConfigFile, "config", "c", "", "Kafka's server.properties")
	f.StringArrayVarP(&o.Set, "set", "s", nil, "config key=value, wins over the file, may be repeated")
	f.StringVarP(&o.DataDir, "data", "d", "", "data directory (log.dirs); default ./gregor-data")
	f.StringVarP(&o.Listen, "listen", "l", "", "host:port to listen on (listeners); default 127.0.0.1:9092, port 0 for a free one")
	f.StringVarP(&o.Advertise, "advertise", "a", "", "host:port that clients are told to connect to (advertised.listeners)")
	f.StringVar(&o.HTTP, "http", "", "host:port of /metrics and /health (gregor.http.listener); default none")
	f.BoolVar(&o.TakeOverAsOnlyVoter, "take-over-as-only-voter", false, "decide alone from now on although the cluster has other voters, which must never come back")
	f.BoolVar(&o.AcceptMetadataLoss, "accept-metadata-loss", false, "start with what is left of the metadata log; partitions that it does not know stay where they are, unserved")
	f.BoolVar(&o.PutAsideStrays, "put-aside-strays", false, "rename every partition that the metadata does not know, or has elsewhere, to -stray, however many they are")
	f.StringVar(&level, "log-level", "warn", "debug, info, warn or error")
	return cmd
}

func logTo(out io.Writer, level string, o *gregor.Options) error {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	o.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: l}))
	return nil
}

// start starts a broker. One that is told to stop meanwhile, and does not, is left to the end of the
// process: a disk that does not answer cannot be waited for.
func start(ctx context.Context, o gregor.Options) (*gregor.Broker, error) {
	type result struct {
		b   *gregor.Broker
		err error
	}
	started := make(chan result, 1)
	go func() {
		b, err := gregor.Start(ctx, o)
		started <- result{b, err}
	}()
	select {
	case r := <-started:
		return r.b, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-started:
		return r.b, r.err
	case <-time.After(closeTimeout):
		return nil, fmt.Errorf("the start did not end: %w", ctx.Err())
	}
}

func waitAndClose(ctx context.Context, b *gregor.Broker) error {
	select {
	case <-ctx.Done():
	case <-b.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return b.Close(closing)
}

func banner(out io.Writer, b *gregor.Broker, took time.Duration) {
	me := invocation()
	at := ""
	if b.AdvertisedAddr() != "127.0.0.1:9092" {
		at = " -b " + b.AdvertisedAddr()
	}
	fmt.Fprintf(out, `gregor %s is ready (%d ms)
  data     %s   (cluster %s, node %d)
  clients  %s   (listening on %s)
%[10]stry
  %[8]s topics create greetings%[9]s
  echo hello | %[8]s produce greetings%[9]s
  %[8]s consume greetings --from beginning%[9]s
`, version(), took.Milliseconds(), strings.Join(b.DataDirs(), ", "), b.ClusterID(), b.NodeID(),
		b.AdvertisedAddr(), b.Addr(), me, at, metricsLine(b))
}

// metricsLine is the banner's line about metrics, if they are served on TCP.
func metricsLine(b *gregor.Broker) string {
	if b.HTTPAddr() == "" {
		return ""
	}
	return fmt.Sprintf("  metrics  http://%s/metrics\n", b.HTTPAddr())
}

// invocation is how the user would call this program again.
func invocation() string {
	exe, err := os.Executable()
	if err != nil || strings.Contains(exe, string(filepath.Separator)+"go-build") {
		return "go run ./cmd/gregor"
	}
	return os.Args[0]
}
