package checkpoint

import (
	"bytes"
	"fmt"
	"strconv"
)

// headerLines are the version and the count of entries.
const headerLines = 2

// cutHeader takes the header off a file. An empty file has no entries.
func cutHeader(data []byte) (count int, body []byte, wrong *CorruptError) {
	var lines [headerLines][]byte
	body = data
	for i := range lines {
		lines[i], body, _ = bytes.Cut(body, []byte("\n"))
	}
	if len(data) == 0 {
		return 0, nil, nil
	}
	if err := checkVersion(lines[0]); err != nil {
		wrong = &CorruptError{Line: 1, Err: err}
	}
	if bytes.Count(data, []byte("\n")) < headerLines && len(lines[1]) == 0 {
		return 0, nil, wrong // the first line alone
	}
	n, err := strconv.ParseInt(trim(lines[1]), 10, 32)
	if err != nil && wrong == nil {
		wrong = &CorruptError{Line: 2, Err: err}
	}
	return int(n), body, wrong
}

func checkVersion(text []byte) error {
	version, err := strconv.ParseInt(trim(text), 10, 32)
	if err == nil && version != 0 {
		err = fmt.Errorf("version %d, want 0", version)
	}
	return err
}

// mendHeader finds the entries behind a header of which one byte is wrong, be it the end of a line: so
// many entries follow as the header says there, but for that byte.
func mendHeader(data []byte) (body []byte, count int, ok bool) {
	for digits := 1; digits <= 10; digits++ {
		size := len("0\n\n") + digits
		if size > len(data) {
			return nil, 0, false
		}
		body = data[size:]
		count = bytes.Count(body, []byte("\n"))
		if len(body) > 0 && body[len(body)-1] != '\n' {
			return nil, 0, false
		}
		header := appendTableHeader(nil, count)
		if len(header) == size && differences(header, data[:size]) == 1 {
			return body, count, true
		}
	}
	return nil, 0, false
}

// differences counts the bytes that are not the same in two texts of one length.
func differences(a, b []byte) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
