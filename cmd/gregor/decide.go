package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gregor-kafka/gregor/internal/web"
)

func topicsDecide() *cobra.Command {
	var place brokerPlace
	var q web.DecideRequest
	var abort bool
	cmd := &cobra.Command{
		Use:   "decide TOPIC-PARTITION --producer ID --first OFFSET {--commit|--abort}",
		Short: "Say whether a transaction was committed whose end is lost in damage",
		Long: `Say whether a transaction was committed whose marker is damaged, so that nothing tells. Readers of
committed records get CORRUPT_MESSAGE for its records until then. gregor explain TOPIC lists them. With
--commit they are served from now on; with --abort they are left out, here and by Kafka.`,
		Args: cobra.ExactArgs(1),
		Example: `  gregor explain orders
  gregor topics decide orders-3 --producer 4000 --first 209 --commit`,
		RunE: func(cmd *cobra.Command, names []string) error {
			q.Partition = names[0]
			c := place.client()
			defer c.Close()
			if err := c.Decide(cmd.Context(), q); err != nil {
				return err
			}
			outcome := "aborted"
			if q.Commit {
				outcome = "committed"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: the transaction of producer %d from offset %d on counts as %s\n",
				q.Partition, q.ProducerID, q.FirstOffset, outcome)
			return err
		},
	}
	place.dataFlag(cmd)
	f := cmd.Flags()
	f.Int64Var(&q.ProducerID, "producer", -1, "producer id")
	f.Int64Var(&q.FirstOffset, "first", -1, "first offset of the transaction")
	f.BoolVar(&q.Commit, "commit", false, "it counts as committed")
	f.BoolVar(&abort, "abort", false, "it counts as aborted")
	cmd.MarkFlagsOneRequired("commit", "abort")
	cmd.MarkFlagsMutuallyExclusive("commit", "abort")
	_ = cmd.MarkFlagRequired("producer")
	_ = cmd.MarkFlagRequired("first")
	return cmd
}
