package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gregor-kafka/gregor/internal/client"
)

func consumeCommand() *cobra.Command {
	o := client.ConsumeOptions{}
	var from, format string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Write records to standard output",
		Long: `Write records to standard output.

Records that the broker finds damaged are passed by: a line on standard error names their offsets.
Behind the first thousand of them it looks in growing steps for what can be read again. With
--read-committed the same goes for transactions whose end is lost, see gregor topics decide.

The exit code is 0 if all records were read, and 1 if some could not be or the command failed.`,
		Args: cobra.ExactArgs(1),
		Example: `  gregor consume greetings --from beginning
  gregor consume greetings --from -10 --to-end --format '%p %o %k=%v\n'
  gregor consume orders --from 2026-11-30T08:00:00Z --count 5 --json
  gregor consume orders --group billing`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.Topic = args[0]
			if o.From, err = client.ParseStart(from, time.Now()); err != nil {
				return err
			}
			if !asJSON {
				if o.Format, err = client.ParseFormat(format); err != nil {
					return err
				}
			}
			if terminal(os.Stdout) == nil { // records on a terminal are progress enough
				o.Progress = terminal(os.Stderr)
			}
			o.Warnings = cmd.ErrOrStderr()
			_, err = client.Consume(cmd.Context(), o, cmd.OutOrStdout())
			return err
		},
	}
	brokersFlag(cmd, &o.Brokers)
	f := cmd.Flags()
	f.StringVar(&from, "from", "end", "beginning, end, an offset, -N (N records before the end), a duration before now or a time")
	f.BoolVarP(&o.ToEnd, "to-end", "e", false, "stop where the log ends now instead of waiting for more")
	f.Int64VarP(&o.Count, "count", "n", 0, "stop after so many records")
	f.Int32VarP(&o.Partition, "partition", "p", -1, "only this partition")
	f.StringVarP(&o.Group, "group", "g", "", "join this consumer group; start where it stopped and commit")
	f.BoolVar(&o.ReadCommitted, "read-committed", false, "only records of committed transactions")
	f.StringVarP(&format, "format", "f", `%v\n`, client.FormatHelp)
	f.BoolVar(&asJSON, "json", false, "one JSON object a line, keys, values and header values in base64")
	cmd.MarkFlagsMutuallyExclusive("json", "format")
	cmd.MarkFlagsMutuallyExclusive("group", "partition")
	cmd.MarkFlagsMutuallyExclusive("group", "to-end")
	return cmd
}
