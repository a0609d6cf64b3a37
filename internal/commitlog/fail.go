package commitlog

import (
	"errors"

	"github.com/gregor-kafka/gregor/internal/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// Three things can fail, and each has its type: a step (StepError, DiskFullError), after which
// the log is as it was; the log (StorageError), which refuses changes until it is opened again;
// and the directory that it lies in, of which a log knows nothing: vfs.FaultOf tells its owner.

// fail makes the log refuse all changes until it is opened again: after a failed write,
// nobody knows what the file holds.
func (l *Log) fail(op string, err error) error {
	if errors.Is(err, ErrStorage) {
		return err
	}
	e := &StorageError{l.partition, op, err}
	if l.failure.CompareAndSwap(nil, e) {
		l.logger.Error("log refuses writes until it is opened again", "partition", l.partition, "op", op, "err", err)
		if l.onFailure != nil {
			l.onFailure(e)
		}
	}
	return e
}

// spare is fail for a step that has changed nothing that counts, or was undone: what is not the
// fault of the log or its disk does not end it.
func (l *Log) spare(op string, err error) error {
	switch vfs.FaultOf(err) {
	case vfs.SpaceFault:
		return &DiskFullError{l.partition, op, err}
	case vfs.ValueFault, vfs.ProcessFault:
		if _, ok := errors.AsType[*StepError](err); ok || errors.Is(err, ErrStorage) {
			return err
		}
		return &StepError{l.partition, op, err}
	}
	return l.fail(op, err)
}

// appendFailed tells what a failed append means for the log.
func (l *Log) appendFailed(err error) error {
	if errors.Is(err, segment.ErrTorn) {
		return l.fail("append", err)
	}
	return l.spare("append", err)
}
