package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gregor-kafka/gregor/internal/web"
	"github.com/gregor-kafka/gregor/internal/web/explain"
	"github.com/spf13/cobra"
)

func topicsClean() *cobra.Command {
	var place brokerPlace
	var roll, asJSON bool
	cmd := &cobra.Command{
		Use:   "clean TOPIC[-PARTITION]...",
		Short: "Compact partitions now, whatever their dirty ratio",
		Long: `Compact partitions of a running broker now, one after the other, whatever their dirty ratio. If
nothing is dirty everything is cleaned again, for tombstones and transaction markers whose time has
come. Open transactions, min.compaction.lag.ms and the high watermark are respected, and the active
segment is not touched unless --roll closes it first. An interrupt ends it; the partition stays
as usable as it was.`,
		Args: cobra.MinimumNArgs(1),
		Example: `  gregor topics clean orders
  gregor topics clean orders-3 --roll --data /var/lib/gregor`,
		RunE: func(cmd *cobra.Command, names []string) error {
			c := place.client()
			defer c.Close()
			var errs []error
			for _, name := range names {
				errs = append(errs, cleanNamed(cmd, c, name, roll, asJSON))
			}
			return errors.Join(errs...)
		},
	}
	place.dataFlag(cmd)
	cmd.Flags().BoolVar(&roll, "roll", false, "start a new active segment first, so that all there is can be cleaned")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each partition instead of text")
	return cmd
}

func cleanNamed(cmd *cobra.Command, c *web.Client, name string, roll, asJSON bool) error {
	partitions, err := c.CleanTarget(cmd.Context(), name)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range partitions {
		out, err := c.Clean(cmd.Context(), p, roll, progressTo(cmd.ErrOrStderr(), p.String()))
		switch {
		case err != nil:
			errs = append(errs, err)
		case asJSON:
			errs = append(errs, writeJSON(cmd.OutOrStdout(), out))
		default:
			errs = append(errs, out.WriteText(cmd.OutOrStdout()))
		}
	}
	return errors.Join(errs...)
}

// progressTo shows progress in one line of a terminal, and nothing elsewhere.
func progressTo(w io.Writer, name string) func(explain.Progress) {
	if f, ok := w.(*os.File); !ok || terminal(f) == nil {
		return nil
	}
	return func(r explain.Progress) { fmt.Fprintf(w, "\r\x1b[K%s  %s\r", name, r.Text()) }
}
