package segment

import (
	"strconv"
	"strings"
)

// A Kind is one of the files of a segment, by the suffix of its name.
type Kind string

// The files of a segment, in the order in which they are renamed.
const (
	LogFile       Kind = ".log"
	IndexFile     Kind = ".index"
	TimeIndexFile Kind = ".timeindex"
	TxnIndexFile  Kind = ".txnindex"
)

var kinds = [...]Kind{LogFile, IndexFile, TimeIndexFile, TxnIndexFile}

// Suffixes behind the name of a file on its way in or out.
const (
	DeletedSuffix = ".deleted" // no longer part of the log, removed after a delay
	CleanedSuffix = ".cleaned" // output of compaction or of a split, incomplete
	SwapSuffix    = ".swap"    // complete output about to replace its originals
)

// Name returns the name of a segment's file: the base offset with at least 20 digits, the
// kind, and a suffix or "".
func Name(base int64, kind Kind, suffix string) string {
	digits := nameDigits(base)
	return string(digits[:]) + string(kind) + suffix
}

// nameDigits writes a base offset with 20 digits. A start makes names by the ten thousand.
func nameDigits(base int64) (digits [20]byte) {
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = '0' + byte(base%10)
		base /= 10
	}
	return digits
}

// ParseName takes a file name apart. As in Kafka, the base offset is all before the first
// dot. ok is false for names that are no segment's: producer snapshots, checkpoints.
func ParseName(name string) (base int64, kind Kind, suffix string, ok bool) {
	dot := strings.IndexByte(name, '.')
	digits := name[:max(dot, 0)]
	if digits == "" || digits[0] < '0' || digits[0] > '9' { // an error of ParseUint is a copy of the name
		return 0, "", "", false
	}
	n, err := strconv.ParseUint(digits, 10, 63) // which takes no sign
	if err != nil {
		return 0, "", "", false
	}
	rest := name[dot:]
	for _, kind := range kinds {
		suffix, found := strings.CutPrefix(rest, string(kind))
		if found && (suffix == "" || suffix[0] == '.') {
			return int64(n), kind, suffix, true
		}
	}
	return 0, "", "", false
}
