package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gregor-kafka/gregor/internal/human"
	"github.com/gregor-kafka/gregor/internal/offline/check"
)

// errDamage makes the exit code 1; what was found is on standard output.
var errDamage = errors.New("there is damage")

// checkWait is how long a check waits before it takes what a broker may be writing for damage.
const checkWait = 2 * time.Second

// checkWorkers is how many partitions are checked at a time unless said otherwise.
func checkWorkers() int { return runtime.GOMAXPROCS(0) }

func checkCommand() *cobra.Command {
	o := check.Options{Workers: checkWorkers(), Wait: checkWait}
	var asJSON, quiet bool
	cmd := &cobra.Command{
		Use:   "check DIR...",
		Short: "Look for everything that is wrong in log directories, without a broker",
		Long: `Check log directories, or single partitions of them: batches, checksums, records, offsets,
indexes, leader epochs, snapshots and checkpoints, each for itself and against the others.
Needs no broker, takes no lock and never writes. It may run beside a broker: what changes
meanwhile is looked at again. Name all directories of a broker that has several: they are
compared with each other.

Each finding names file, byte and offset. Damage is bytes that are lost or wrong; a note is what
an unclean stop leaves and the next start repairs. With --json each finding is an object with
file, position, offset (-1 where there is none), severity ("damage" or "note") and message.

The exit code is 0 if nothing is damaged, 1 if something is, and 2 if the command was called in a
wrong way or could not read everything.`,
		Example: `  gregor check gregor-data
  gregor check /disk1/kafka /disk2/kafka
  gregor check gregor-data/orders-0 --json`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if out := terminal(os.Stderr); out != nil {
				o.Progress = func(p check.Progress) { showProgress(out, p) }
			}
			report, err := check.Dirs(cmd.Context(), dirs, o)
			if o.Progress != nil {
				fmt.Fprint(os.Stderr, "\r\x1b[K")
			}
			if showErr := showReport(cmd.OutOrStdout(), report, asJSON, quiet); err == nil {
				err = showErr
			}
			if err != nil {
				return notDoneError{err}
			}
			if report.Damaged() > 0 {
				return errDamage
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.Workers, "workers", "w", o.Workers, "partitions that are checked at the same time")
	f.BoolVar(&o.Shallow, "shallow", false, "do not look inside batches whose checksum is right")
	f.BoolVar(&asJSON, "json", false, "one JSON object a finding")
	f.BoolVarP(&quiet, "quiet", "q", false, "no notes")
	return cmd
}

// showReport writes the findings and, as text, a last line with the sum.
func showReport(out io.Writer, r *check.Report, asJSON, quiet bool) error {
	var b strings.Builder
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	notes := 0
	for _, f := range r.Findings {
		if f.Severity == check.Note {
			if notes++; quiet {
				continue
			}
		}
		if !asJSON {
			fmt.Fprintln(&b, f)
		} else if err := lines.Encode(f); err != nil {
			return err
		}
	}
	if !asJSON {
		fmt.Fprintf(&b, "%d partitions, %s in %s (%s/s): %d damaged places, %d notes\n", r.Partitions, human.Bytes(r.Bytes),
			r.Elapsed.Round(time.Millisecond), human.Bytes(int64(float64(r.Bytes)/max(r.Elapsed.Seconds(), 1e-9))), r.Damaged(), notes)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// showProgress rewrites one line of a terminal.
func showProgress(out io.Writer, p check.Progress) {
	fmt.Fprintf(out, "\r%3d%%  %s of %s, %d partitions done, %s/s, %s left\x1b[K", p.Done*100/max(p.Total, 1),
		human.Bytes(p.Done), human.Bytes(p.Total), p.Partitions, human.Bytes(int64(p.Rate())), p.Left().Round(time.Second))
}
