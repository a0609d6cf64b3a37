package checkpoint

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/crc32c"
	"github.com/gregor-kafka/gregor/vfs"
)

// A TransactionsFile is in the directory of a partition that has, or had, transactions whose end is
// lost in damage. Kafka ignores it.
//
//	0                      version
//	1                      count
//	4 209 219 ABORT 8d...  producer id, first offset, offset behind the damage with its end,
//	                       UNDECIDED, COMMIT or ABORT, CRC-32C of the line up to here

// A LostTransaction is a line of a TransactionsFile.
type LostTransaction struct {
	ProducerID  int64
	FirstOffset int64
	EndOffset   int64
	Outcome     TransactionOutcome
}

// A TransactionOutcome is what an operator has decided.
type TransactionOutcome int8

// Outcomes of a transaction whose end is lost.
const (
	Undecided TransactionOutcome = iota
	Commit
	Abort
)

var outcomes = [...]string{"UNDECIDED", "COMMIT", "ABORT"}

func (o TransactionOutcome) String() string { return outcomes[o] }

// ReadTransactions reads a TransactionsFile. A missing one has none.
func ReadTransactions(fsys vfs.FS, path string) (list []LostTransaction, err error) {
	err = readTable(fsys, path, 5, func(fields [][]byte) error {
		t, err := parseTransaction(fields)
		list = append(list, t)
		return err
	})
	if !Whole(err) {
		return nil, err
	}
	return list, err
}

func parseTransaction(fields [][]byte) (t LostTransaction, err error) {
	for i, p := range [...]*int64{&t.ProducerID, &t.FirstOffset, &t.EndOffset} {
		if *p, err = strconv.ParseInt(string(fields[i]), 10, 64); err != nil {
			return t, err
		}
	}
	for t.Outcome = 0; int(t.Outcome) < len(outcomes) && t.Outcome.String() != string(fields[3]); {
		t.Outcome++
	}
	if int(t.Outcome) == len(outcomes) {
		return t, fmt.Errorf("outcome %q", fields[3])
	}
	if want := strings.Fields(string(t.append(nil)))[4]; want != string(fields[4]) {
		return t, fmt.Errorf("checksum %s, want %s", fields[4], want)
	}
	return t, nil
}

func (t LostTransaction) append(b []byte) []byte {
	line := fmt.Appendf(nil, "%d %d %d %v", t.ProducerID, t.FirstOffset, t.EndOffset, t.Outcome)
	return fmt.Appendf(b, "%s %08x\n", line, crc32c.Checksum(line))
}

// WriteTransactions replaces a TransactionsFile.
func WriteTransactions(fsys vfs.FS, path string, list []LostTransaction) error {
	b := appendTableHeader(nil, len(list))
	for _, t := range list {
		b = t.append(b)
	}
	return vfs.WriteFileAtomic(fsys, path, b)
}
