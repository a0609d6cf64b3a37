package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gregor-kafka/gregor/internal/web"
	"github.com/gregor-kafka/gregor/internal/web/explain"
)

// brokerPlace says where a running broker is asked: by the socket in its data directory, or, where
// nothing is changed, by its gregor.http.listener.
type brokerPlace struct{ data, http string }

func (p *brokerPlace) dataFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.data, "data", "d", "gregor-data", "data directory of the running broker, the first of its log.dirs")
}

func (p *brokerPlace) httpFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.http, "http", "", "ask gregor.http.listener at host:port instead")
}

func (p *brokerPlace) client() *web.Client {
	if p.http != "" {
		return web.NewHTTPClient(p.http)
	}
	return web.NewSocketClient(p.data)
}

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
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func(r explain.Progress) { fmt.Fprintf(w, "\r\x1b[K%s  %s\r", name, r.Text()) }
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
