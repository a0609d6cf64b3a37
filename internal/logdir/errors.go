package logdir

import "errors"

// Refusals.
var (
	// ErrWrongDirectory: meta.properties says that a directory belongs to another cluster
	// or broker, or is the copy of another directory.
	ErrWrongDirectory = errors.New("wrong log directory")
	// ErrDuplicate: a partition, or a directory of the configuration, is there twice.
	ErrDuplicate = errors.New("duplicate")
	// ErrNoDirectory: no directory is online that may take the log.
	ErrNoDirectory = errors.New("no log directory online")
	// ErrCordoned: the directory takes no new logs (cordoned.log.dirs).
	ErrCordoned = errors.New("log directory is cordoned")
	// ErrMayExist: a log that is not new cannot be created while a directory is offline,
	// because it may be there.
	ErrMayExist = errors.New("log may exist in an offline log directory")
	// ErrNameTooLong: the name of a topic leaves no room for what a move adds to it.
	ErrNameTooLong = errors.New("directory name is too long")
	// ErrLeftAlone: a directory of the partition is there, and it is not known whether it is the
	// partition's.
	ErrLeftAlone = errors.New("left alone")
	// ErrUnknownPartition: there is no log of this partition.
	ErrUnknownPartition = errors.New("no such log")
	// ErrClosed: the manager is closed, or closing.
	ErrClosed = errors.New("log manager is closed")
)
