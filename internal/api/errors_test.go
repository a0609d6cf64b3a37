package api

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// uncoded are the errors of packages below that no client is told as such, with the reason.
var uncoded = map[string]string{
	"coordinator.ErrBatchTooLarge":  "UNKNOWN_SERVER_ERROR: a client can do nothing about it, as in Kafka",
	"coordinator.ErrUncertain":      "stands beside the error that it comes of",
	"replica.ErrIneligibleReplica":  "an answer to AlterPartition",
	"replica.ErrInvalidRequest":     "an answer to AlterPartition",
	"replica.ErrNewLeaderElected":   "an answer to AlterPartition",
	"logdir.ErrDuplicate":           "ends a start",
	"logdir.ErrWrongDirectory":      "ends a start",
	"logdir.ErrLeftAlone":           "the partition is offline",
	"commitlog.ErrClosed":           "the cause of a StorageError, which matches ErrStorage",
	"commitlog.ErrMessageTooLarge":  "record.ErrTooLarge",
	"commitlog.ErrNotUndecided":     "asked for on gregor.sock only",
	"commitlog.ErrStopped":          "ends a load that is stopped",
	"commitlog.ErrSegmentsChanged":  "compaction and repairs, which try again",
	"commitlog.ErrUnexpectedOffset": "appends of a follower",

	"replica.ErrInvalidUpdateVersion":  "an answer to AlterPartition",
	"replica.ErrOperationNotAttempted": "an answer to AlterPartition",
	"commitlog.ErrInconsistentTopicID": "creation and loading, which leave the partition offline",
	"commitlog.ErrNoOffsets":           "UNKNOWN_SERVER_ERROR: there is no code for the end of all offsets",
	"commitlog.ErrOffsetsOutOfOrder":   "appends of a follower",
}

// Every refusal of a package below has a code, or a reason for having none.
func TestRefusalsHaveCodes(t *testing.T) {
	table, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	sentinel := regexp.MustCompile(`(?m)^(?:\t|var )(Err[A-Z]\w*) +(?:error )?= `)
	found := map[string]bool{}
	for _, dir := range []string{"coordinator", "coordinator/group", "replica", "logdir", "commitlog"} {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range sentinel.FindAllSubmatch(source, -1) {
				found[filepath.Base(dir)+"."+string(m[1])] = true
			}
		}
	}
	for name := range found {
		coded := strings.Contains(string(table), "{"+name+",")
		if _, exempt := uncoded[name]; coded == exempt {
			t.Errorf("%s: in the table of codes %v, among the exceptions %v", name, coded, exempt)
		}
	}
	for name := range uncoded {
		if !found[name] {
			t.Errorf("%s does not exist", name)
		}
	}
}
