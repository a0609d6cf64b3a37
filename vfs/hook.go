package vfs

import "fmt"

// An OpKind names an operation of an FS or a File.
type OpKind int

// The operations that a Mem hook sees.
const (
	OpOpen OpKind = iota
	OpCreate
	OpRemove
	OpRename
	OpMkdir
	OpReadDir
	OpStat
	OpSetModTime
	OpSyncDir
	OpLock
	OpSpace
	OpRead
	OpWrite
	OpTruncate
	OpSync
	OpClose
)

var opNames = [...]string{
	"open", "create", "remove", "rename", "mkdir", "readdir", "stat", "setmodtime",
	"syncdir", "lock", "space", "read", "write", "truncate", "sync", "close",
}

func (k OpKind) String() string {
	if k < 0 || int(k) >= len(opNames) {
		return fmt.Sprintf("OpKind(%d)", int(k))
	}
	return opNames[k]
}

// Changes reports whether the operation changes the file system or what a crash leaves of it.
func (k OpKind) Changes() bool {
	switch k {
	case OpCreate, OpRemove, OpRename, OpMkdir, OpSyncDir, OpWrite, OpTruncate, OpSync:
		return true
	}
	return false
}

// An Op is one operation that is about to happen.
type Op struct {
	Kind    OpKind
	Name    string // the path; for operations on a File the name it was opened with
	NewName string // of a rename
	Offset  int64  // of a read or write
	Size    int64  // bytes to read or write, or the size to truncate to
}

func (op Op) String() string {
	switch op.Kind {
	case OpRename:
		return fmt.Sprintf("rename %s to %s", op.Name, op.NewName)
	case OpRead, OpWrite:
		return fmt.Sprintf("%s %s [%d,%d)", op.Kind, op.Name, op.Offset, op.Offset+op.Size)
	case OpTruncate:
		return fmt.Sprintf("truncate %s to %d", op.Name, op.Size)
	}
	return fmt.Sprintf("%s %s", op.Kind, op.Name)
}

// A ShortWrite is what a hook returns to let a write stop after its first N bytes. The writer
// gets Err.
type ShortWrite struct {
	N   int
	Err error
}

func (e *ShortWrite) Error() string { return fmt.Sprintf("short write of %d bytes: %v", e.N, e.Err) }
func (e *ShortWrite) Unwrap() error { return e.Err }
