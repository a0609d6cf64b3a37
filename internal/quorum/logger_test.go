package quorum

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What raft says of each attempt is logged once a minute for each voter, with how often it came.
func TestRaftLogger(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	logger := newRaftLogger(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return now })
	lines := func() int {
		n := strings.Count(out.String(), "\n")
		out.Reset()
		return n
	}
	for term := range 50 {
		for _, voter := range []string{"{Voter 1 1}", "{Voter 2 2}"} {
			logger.Error("failed to make requestVote RPC", "target", voter, "error", "refused "+strconv.Itoa(term), "term", term)
		}
		logger.Warn("Election timeout reached, restarting election")
		logger.Info("entering candidate state")
	}
	if got := lines(); got != 3 {
		t.Errorf("%d lines, want one for each voter and one for the elections", got)
	}
	now = now.Add(repeatAfter)
	logger.Error("failed to make requestVote RPC", "target", "{Voter 1 1}", "error", "refused", "term", 51)
	if got := out.String(); !strings.Contains(got, "repeated=49") || !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "refused") {
		t.Errorf("after a minute: %s", got)
	}
	lines()
	for i := range 2 * sayingsMax { // none of them is a repetition, and they are not kept for ever
		logger.Warn("a line of its own: " + strconv.Itoa(i))
	}
	if got := lines(); got != 2*sayingsMax {
		t.Errorf("%d of %d different lines", got, 2*sayingsMax)
	}
}
