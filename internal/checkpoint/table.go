package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/gregor-kafka/gregor/vfs"
)

// tableSizeMax bounds what is read into memory: a million partitions with the longest
// topic names.
const tableSizeMax = 300 << 20

// readTable calls entry with the fields of each line below the two header lines. It is
// what all checkpoint files have in common. The error is about the first line that is wrong; entry gets
// the lines behind it too.
func readTable(fsys vfs.FS, path string, fieldCount int, entry func(fields [][]byte) error) error {
	data, err := vfs.ReadFile(fsys, path, tableSizeMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if line, err := parseTable(data, fieldCount, entry); err != nil {
		return &CorruptError{Path: path, Line: line, Err: err}
	}
	return nil
}

// parseTable returns the first line that is wrong beside the error.
func parseTable(data []byte, fieldCount int, entry func(fields [][]byte) error) (wrong int, err error) {
	line, want, got := 0, int64(0), int64(0)
	for text := range bytes.Lines(data) {
		line++
		var lineErr error
		switch line {
		case 1:
			lineErr = checkVersion(text)
		case 2:
			want, lineErr = strconv.ParseInt(trim(text), 10, 32)
		default:
			got++
			lineErr = parseLine(text, fieldCount, entry)
		}
		if lineErr != nil && err == nil {
			wrong, err = line, lineErr
		}
	}
	if got != want && err == nil {
		return 0, fmt.Errorf("%d entries, the header says %d", got, want)
	}
	return wrong, err
}

// parseLine reads an entry. Every line that was written ends in a newline: the number at the end of one
// without may be half of what it was.
func parseLine(text []byte, fieldCount int, entry func(fields [][]byte) error) error {
	fields := bytes.Fields(text)
	if len(fields) != fieldCount {
		return fmt.Errorf("%d fields, want %d", len(fields), fieldCount)
	}
	if text[len(text)-1] != '\n' {
		return errors.New("the line is cut off")
	}
	return entry(fields)
}

func checkVersion(text []byte) error {
	version, err := strconv.ParseInt(trim(text), 10, 32)
	if err == nil && version != 0 {
		err = fmt.Errorf("version %d, want 0", version)
	}
	return err
}

func trim(line []byte) string { return string(bytes.TrimSpace(line)) }

// appendTableHeader begins a file of count entries.
func appendTableHeader(b []byte, count int) []byte {
	b = append(b, "0\n"...)
	b = strconv.AppendInt(b, int64(count), 10)
	return append(b, '\n')
}
