// Command gregor is a Kafka broker in one static binary, and the few client commands
// that one wants beside it. Each subcommand has its file; what they do is in the
// packages gregor, internal/client, internal/offline/dump and internal/offline/check.
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
		os.Exit(exitCode(err))
	}
}

// A notDoneError means that a command was called in a wrong way or could not do its work. Those
// whose answer may be no have exit code 1 for that, and 2 for this.
type notDoneError struct{ error }

func (e notDoneError) Unwrap() error { return e.error }

func exitCode(err error) int {
	if errors.As(err, &notDoneError{}) {
		return 2
	}
	return 1
}

// usage makes wrong arguments a notDoneError.
func usage(valid cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := valid(cmd, args); err != nil {
			return notDoneError{err}
		}
		return nil
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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return notDoneError{err} })
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
