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
	if wrong := parseTable(data, fieldCount, entry); wrong != nil {
		wrong.Path = path
		return wrong
	}
	return nil
}

// parseTable returns what is wrong, without a path.
func parseTable(data []byte, fieldCount int, entry func(fields [][]byte) error) *CorruptError {
	count, body, wrong := cutHeader(data)
	if wrong != nil || bytes.Count(body, []byte("\n")) > count {
		if mended, n, ok := mendHeader(data); ok {
			if wrong == nil {
				wrong = otherCount(n, count)
			}
			wrong.mended, body, count = true, mended, n
		}
	}
	n := 0
	for text := range bytes.Lines(body) {
		n++
		err := parseLine(text, fieldCount, entry)
		switch {
		case err == nil:
		case wrong == nil:
			wrong = &CorruptError{Line: headerLines + n, Err: err}
		default:
			wrong.mended = false
		}
	}
	if n != count && wrong == nil {
		return otherCount(n, count)
	}
	return wrong
}

func otherCount(got, want int) *CorruptError {
	return &CorruptError{Err: fmt.Errorf("%d entries, the header says %d", got, want)}
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

func trim(line []byte) string { return string(bytes.TrimSpace(line)) }

// appendTableHeader begins a file of count entries.
func appendTableHeader(b []byte, count int) []byte {
	b = append(b, "0\n"...)
	b = strconv.AppendInt(b, int64(count), 10)
	return append(b, '\n')
}
