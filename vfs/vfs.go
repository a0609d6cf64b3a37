package vfs

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

// ErrLocked is matched by the error of FS.Lock when somebody holds the lock.
var ErrLocked = errors.New("locked by another process")

// An FS is a file system. All methods are safe for concurrent use.
type FS interface {
	// OpenFile opens a file with the os.O_* flags. Directories cannot be opened.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Rename moves a file or directory and replaces a file at newname. It is atomic.
	Rename(oldname, newname string) error
	Mkdir(name string, perm fs.FileMode) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	SetModTime(name string, t time.Time) error
	// SyncDir makes the names in a directory durable: those created, renamed to, renamed
	// from and removed.
	SyncDir(name string) error
	// Lock takes an exclusive lock on a file, which it creates. It does not wait: when this
	// or another process holds the lock, the error matches ErrLocked. The lock is an fcntl
	// lock, the kind that Java takes. Close unlocks and removes the file.
	Lock(name string) (io.Closer, error)
	// Space returns the size of the file system that holds name and what is free of it, in
	// bytes.
	Space(name string) (total, free int64, err error)
}

// A File is an open file. ReadAt, WriteAt, Size, Sync and ModTime may run concurrently;
// nothing may run during or after Close.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string // as given to OpenFile
	Size() (int64, error)
	Truncate(size int64) error
	// Sync returns when the bytes and the size of the file are durable. After an error the
	// unsynced bytes must be taken for lost: a second Sync proves nothing.
	Sync() error
	ModTime() (time.Time, error)
	// Fd returns the descriptor, for sendfile; ok is false where there is none. The caller
	// neither closes it nor uses it after Close.
	Fd() (fd uintptr, ok bool)
}
