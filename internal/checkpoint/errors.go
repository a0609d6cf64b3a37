package checkpoint

import (
	"errors"
	"fmt"
)

// ErrCorrupt matches every error that means the text of a file is wrong, not the disk.
var ErrCorrupt = errors.New("corrupt checkpoint")

// A CorruptError says where a file stops making sense.
type CorruptError struct {
	Path string
	Line int // from 1; 0 is the file as a whole
	Err  error

	mended bool // it is a byte of the header, and the entries are all there
}

// Whole reports whether what was read with an error is all that was written all the same: there is no
// error, or it is about one byte of a header, and the rest tells what it was.
func Whole(err error) bool {
	var corrupt *CorruptError
	return err == nil || errors.As(err, &corrupt) && corrupt.mended
}

func (e *CorruptError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s: line %d: %v", e.Path, e.Line, e.Err)
}

func (e *CorruptError) Unwrap() error        { return e.Err }
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
