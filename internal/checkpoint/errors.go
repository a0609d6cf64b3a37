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
}

func (e *CorruptError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s: line %d: %v", e.Path, e.Line, e.Err)
}

func (e *CorruptError) Unwrap() error        { return e.Err }
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
