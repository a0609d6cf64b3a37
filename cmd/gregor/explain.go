package main

import (
	"time"

	"github.com/spf13/cobra"
)

func explainCommand() *cobra.Command {
	var place brokerPlace
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain TOPIC",
		Short: "Say why records of a compacted topic are kept and what will go",
		Long: `Say, for each partition on a running broker, what is clean and what is dirty, who holds back
what may not be cleaned yet (an open transaction, the high watermark, min.compaction.lag.ms, the
active segment), when it is due, how far a cleaning under way is, and what the last one removed. Of
any topic it lists transactions whose end is lost in damage; gregor topics decide ends them.`,
		Args: cobra.ExactArgs(1),
		Example: `  gregor explain orders
  gregor explain __consumer_offsets --data /var/lib/gregor --json | jq '.partitions[] | select(.due)'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := place.client()
			defer c.Close()
			r, err := c.Explain(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), r)
			}
			return r.WriteText(cmd.OutOrStdout(), time.Now())
		},
	}
	place.dataFlag(cmd)
	place.httpFlag(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object instead of text")
	return cmd
}
