package quorum

import (
	"errors"
	"fmt"
	"sync"
)

// ErrCorrupt matches errors that say that the bytes of the metadata log are wrong.
var ErrCorrupt = errors.New("corrupt metadata log")

// ErrClosed is the answer to a Propose after Close.
var ErrClosed = errors.New("quorum is closed")

// A CorruptError says where a file of the metadata log stops making sense.
type CorruptError struct {
	Path     string
	Position int64 // first byte that is wrong, -1 when the file as a whole is
	Offset   int64 // offset expected there, -1 when unknown
	Err      error
}

func (e *CorruptError) Error() string {
	if e.Position < 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s: byte %d (offset %d): %v", e.Path, e.Position, e.Offset, e.Err)
}

func (e *CorruptError) Unwrap() error        { return e.Err }
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// A failure is the first error that made the metadata log unwritable. It lasts until the
// directory is opened again: what was written last may or may not be on the disk.
type failure struct {
	once sync.Once
	err  error
	done chan struct{} // closed once err is set
}

func newFailure() *failure { return &failure{done: make(chan struct{})} }

func (f *failure) set(err error) {
	f.once.Do(func() {
		f.err = err
		close(f.done)
	})
}

func (f *failure) get() error {
	select {
	case <-f.done:
		return f.err
	default:
		return nil
	}
}
