package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gregor-kafka/gregor/internal/checkpoint"
)

// SocketName is the Unix socket in the first log directory of a running broker.
const SocketName = checkpoint.Socket

const socketMode fs.FileMode = 0o600

// A SocketPathError says that the path of a socket has more bytes than the operating
// system can take.
type SocketPathError struct {
	Path string
	Max  int
}

func (e *SocketPathError) Error() string {
	return fmt.Sprintf("%s: path of a socket has %d bytes, at most %d are possible", e.Path, len(e.Path), e.Max)
}

// socketPath is where the socket of a log directory is.
func socketPath(dir string) (string, error) {
	path := filepath.Join(dir, SocketName)
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most {
		return "", &SocketPathError{path, most}
	}
	return path, nil
}

// listenSocket replaces what is left of an earlier socket.
func listenSocket(dir string) (net.Listener, *socketFile, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, nil, err
	}
	switch old, err := os.Lstat(path); {
	case err == nil && old.Mode().Type() != fs.ModeSocket:
		return nil, nil, fmt.Errorf("%s exists and is not a socket", path)
	case err == nil:
		if err := os.Remove(path); err != nil {
			return nil, nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	}
	// Linux takes the mode of the file from the descriptor, so that it is never wider.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), uint32(socketMode)) })
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	file := &socketFile{path: path}
	if err = os.Chmod(path, socketMode); err == nil {
		file.info, err = os.Lstat(path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, l.Close(), os.Remove(path))
	}
	return l, file, nil
}

// A socketFile is a socket in the file system that we made.
type socketFile struct {
	path string
	info fs.FileInfo
}

// remove removes it if it is still ours.
func (f *socketFile) remove() error {
	now, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !os.SameFile(now, f.info):
		return nil
	}
	return os.Remove(f.path)
}
