package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gregor-kafka/gregor/internal/client"
)

func produceCommand() *cobra.Command {
	o := client.ProduceOptions{}
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Send each line of standard input as a record",
		Args:  cobra.ExactArgs(1),
		Example: `  echo hello | gregor produce greetings
  gregor produce users --key-separator : --header source=cli <users.txt
  gregor consume a --from beginning --to-end --json | gregor produce b --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Topic = args[0]
			o.Progress = terminal(os.Stderr)
			if terminal(os.Stdin) != nil {
				o.Progress = nil // somebody types: the line would be in the way
			}
			_, err := client.Produce(cmd.Context(), o, cmd.InOrStdin())
			return err
		},
	}
	brokersFlag(cmd, &o.Brokers)
	f := cmd.Flags()
	f.Int32VarP(&o.Partition, "partition", "p", -1, "partition to write to (-1: by key)")
	f.StringVarP(&o.KeySeparator, "key-separator", "K", "", "split each line here into key and value")
	f.StringVarP(&o.NullMarker, "null", "N", "", "a key or value that is exactly this text is null")
	f.StringArrayVarP(&o.Headers, "header", "H", nil, "header name=value for every record, may be repeated")
	f.BoolVar(&o.JSON, "json", false, "lines are records as 'gregor consume --json' writes them")
	f.StringVarP(&o.Compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.StringVar(&o.Acks, "acks", "all", "all, 1 or 0")
	f.BoolVar(&o.Idempotent, "idempotent", true, "no duplicates when a request is repeated (acks=all only)")
	return cmd
}
