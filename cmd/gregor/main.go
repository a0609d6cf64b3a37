// Command gregor is a Kafka broker in one static binary, and the few client commands
// that one wants beside it. Each subcommand has its file; what they do is in the
// packages gregor, internal/tools and internal/offline.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "gregor:", err)
		}
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "gregor",
		Short: "A Kafka broker in one static binary",
		Long: `gregor does Apache Kafka's job in one static binary: the same wire protocol, the same
files, the same names.

  gregor serve                                   a broker on 127.0.0.1:9092, data in ./gregor-data
  gregor topics create greetings
  echo hello | gregor produce greetings
  gregor consume greetings --from beginning

  gregor explain orders                          why a compacted topic keeps what it keeps

  gregor check gregor-data                       what is wrong in a log directory, without a broker
  gregor dump gregor-data/greetings-0            what is in it`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(serveCommand(), topicsCommand(), produceCommand(), consumeCommand(), explainCommand(), dumpCommand(), checkCommand(), versionCommand())
	return root
}

// brokersFlag adds --broker to a client command.
func brokersFlag(cmd *cobra.Command, brokers *[]string) {
	fallback := os.Getenv("GREGOR_BROKER")
	if fallback == "" {
		fallback = "127.0.0.1:9092"
	}
	cmd.PersistentFlags().StringSliceVarP(brokers, "broker", "b", []string{fallback},
		"broker to ask first, host:port (environment: GREGOR_BROKER)")
}
