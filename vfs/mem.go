package vfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Mem is a file system in memory that knows what a crash may leave of it; see the package
// documentation. "a" and "/a" are the same path. It is safe for concurrent use.
type Mem struct {
	hook atomic.Pointer[func(Op) error]
	*memDisk

	killed bool              // guarded by memDisk.mu
	locks  map[*memNode]bool // guarded by memDisk.mu
}

// A memDisk is what one Mem after the other has.
type memDisk struct {
	// mu guards the tree below root and everything in it. It is not held while a hook runs.
	mu      sync.RWMutex
	root    *memNode
	changes []dirChange // of all directories since their last SyncDir, oldest first
}

// A memNode is a file or a directory. Its name is in the directories that have it.
type memNode struct {
	dir     bool
	mode    fs.FileMode
	modTime time.Time

	// Of a directory: the entries now, and those that are durable.
	entries map[string]*memNode
	durable map[string]*memNode

	// Of a file: the bytes now, those that are durable, and what was written since.
	// Invariant: synced with all of pending applied is data.
	data    []byte
	synced  []byte
	pending []fileChange
}

// NewMem returns an empty file system. Its root directory exists.
func NewMem() *Mem {
	return newMemOf(&memDisk{root: newMemDir(0o755)})
}

func newMemOf(disk *memDisk) *Mem { return &Mem{memDisk: disk, locks: make(map[*memNode]bool)} }

// errKilled fails what a process does after its end.
var errKilled = errors.New("the process was killed")

// Kill ends the use of m, as the end of a process does, and returns the file system for the next
// one: it has all that was written, synced or not, no hook and no locks. Whatever is done to m and
// its files from now on fails and changes nothing.
func (m *Mem) Kill() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = true
	clear(m.locks)
	return newMemOf(m.memDisk)
}

// lock begins a change, with mu locked unless the hook objects or the process is gone.
func (m *Mem) lock(op Op) error {
	if err := m.before(op); err != nil {
		return err
	}
	m.mu.Lock()
	if m.killed {
		m.mu.Unlock()
		return op.fail(errKilled)
	}
	return nil
}

// rlock is lock for what changes nothing, with mu locked for reading.
func (m *Mem) rlock(op Op) error {
	if err := m.before(op); err != nil {
		return err
	}
	m.mu.RLock()
	if m.killed {
		m.mu.RUnlock()
		return op.fail(errKilled)
	}
	return nil
}

func (op Op) fail(err error) error {
	return &fs.PathError{Op: op.Kind.String(), Path: op.Name, Err: err}
}

func newMemDir(perm fs.FileMode) *memNode {
	return &memNode{
		dir: true, mode: fs.ModeDir | perm.Perm(), modTime: time.Now(),
		entries: make(map[string]*memNode), durable: make(map[string]*memNode),
	}
}

// SetHook sets a function that is called before each operation, without any lock of m: it may
// use m, and CrashClone gives what a crash at that moment would leave. When it returns an
// error the operation is not done and returns that error; see ShortWrite for half a write.
// Nil removes the hook.
func (m *Mem) SetHook(hook func(op Op) error) {
	if hook == nil {
		m.hook.Store(nil)
		return
	}
	m.hook.Store(&hook)
}

func (m *Mem) before(op Op) error {
	hook := m.hook.Load()
	if hook == nil {
		return nil
	}
	if err := (*hook)(op); err != nil {
		return op.fail(err)
	}
	return nil
}

// split returns the elements of a path.
func split(name string) []string {
	name = strings.Trim(filepath.ToSlash(filepath.Clean("/"+name)), "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

func (m *Mem) findLocked(name string) (*memNode, error) {
	n := m.root
	for _, elem := range split(name) {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		next := n.entries[elem]
		if next == nil {
			return nil, fs.ErrNotExist
		}
		n = next
	}
	return n, nil
}

// parentLocked returns the directory that has or would have name, and its last element.
func (m *Mem) parentLocked(name string) (*memNode, string, error) {
	elems := split(name)
	if len(elems) == 0 {
		return nil, "", fs.ErrInvalid
	}
	last := len(elems) - 1
	dir, err := m.findLocked(strings.Join(elems[:last], "/"))
	if err == nil && !dir.dir {
		err = syscall.ENOTDIR
	}
	return dir, elems[last], err
}

// OpenFile implements FS. The hook sees OpCreate if os.O_CREATE is set and the file is missing,
// else OpOpen, then OpTruncate if os.O_TRUNC changes it.
func (m *Mem) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	kind := OpOpen
	if flag&os.O_CREATE != 0 && !m.exists(name) {
		kind = OpCreate
	}
	n, err := m.open(Op{Kind: kind, Name: name}, flag, perm)
	if err != nil {
		return nil, err
	}
	f := &memFile{m: m, n: n, name: name, writable: flag&(os.O_WRONLY|os.O_RDWR) != 0}
	if flag&os.O_TRUNC != 0 && f.length() > 0 {
		if err := f.Truncate(0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (m *Mem) open(op Op, flag int, perm fs.FileMode) (*memNode, error) {
	if err := m.lock(op); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	n, err := m.openLocked(op.Name, flag, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: op.Name, Err: err}
	}
	return n, nil
}

func (m *Mem) exists(name string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, err := m.findLocked(name)
	return err == nil
}

func (m *Mem) openLocked(name string, flag int, perm fs.FileMode) (*memNode, error) {
	dir, elem, err := m.parentLocked(name)
	if err != nil {
		return nil, err
	}
	n := dir.entries[elem]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, fs.ErrNotExist
	case n == nil:
		n = &memNode{mode: perm.Perm(), modTime: time.Now()}
		m.changeLocked(dirChange{dir: dir, name: elem, node: n})
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, fs.ErrExist
	case n.dir:
		return nil, syscall.EISDIR
	}
	return n, nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	if err := m.lock(Op{Kind: OpRemove, Name: name}); err != nil {
		return err
	}
	defer m.mu.Unlock()
	dir, elem, err := m.parentLocked(name)
	if err == nil {
		switch n := dir.entries[elem]; {
		case n == nil:
			err = fs.ErrNotExist
		case len(n.entries) > 0:
			err = syscall.ENOTEMPTY
		}
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	m.changeLocked(dirChange{dir: dir, name: elem})
	return nil
}

// Rename implements FS.
func (m *Mem) Rename(oldname, newname string) error {
	if err := m.lock(Op{Kind: OpRename, Name: oldname, NewName: newname}); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if err := m.renameLocked(oldname, newname); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (m *Mem) renameLocked(oldname, newname string) error {
	from, oldElem, err := m.parentLocked(oldname)
	if err != nil {
		return err
	}
	to, newElem, err := m.parentLocked(newname)
	if err != nil {
		return err
	}
	n, target := from.entries[oldElem], to.entries[newElem]
	switch {
	case n == nil:
		return fs.ErrNotExist
	case n == target:
		return nil
	case n.dir && contains(n, to):
		return fs.ErrInvalid
	case target == nil:
	case target.dir != n.dir || target.dir && len(target.entries) > 0:
		return fs.ErrExist
	}
	m.changeLocked(dirChange{dir: to, name: newElem, node: n, from: from, oldName: oldElem})
	return nil
}

// contains reports whether n is dir or has it somewhere below.
func contains(n, dir *memNode) bool {
	if n == dir {
		return true
	}
	for _, child := range n.entries {
		if contains(child, dir) {
			return true
		}
	}
	return false
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string, perm fs.FileMode) error {
	if err := m.lock(Op{Kind: OpMkdir, Name: name}); err != nil {
		return err
	}
	defer m.mu.Unlock()
	dir, elem, err := m.parentLocked(name)
	if len(split(name)) == 0 || err == nil && dir.entries[elem] != nil {
		err = fs.ErrExist
	}
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	m.changeLocked(dirChange{dir: dir, name: elem, node: newMemDir(perm)})
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := m.rlock(Op{Kind: OpReadDir, Name: name}); err != nil {
		return nil, err
	}
	defer m.mu.RUnlock()
	n, err := m.findLocked(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	list := make([]fs.DirEntry, 0, len(n.entries))
	for _, elem := range slices.Sorted(maps.Keys(n.entries)) {
		list = append(list, fs.FileInfoToDirEntry(n.entries[elem].infoLocked(elem)))
	}
	return list, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	if err := m.rlock(Op{Kind: OpStat, Name: name}); err != nil {
		return nil, err
	}
	defer m.mu.RUnlock()
	n, err := m.findLocked(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return n.infoLocked(filepath.Base(name)), nil
}

// SetModTime implements FS.
func (m *Mem) SetModTime(name string, t time.Time) error {
	if err := m.lock(Op{Kind: OpSetModTime, Name: name}); err != nil {
		return err
	}
	defer m.mu.Unlock()
	n, err := m.findLocked(name)
	if err != nil {
		return &fs.PathError{Op: "chtimes", Path: name, Err: err}
	}
	n.modTime = t
	return nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error {
	if err := m.lock(Op{Kind: OpSyncDir, Name: name}); err != nil {
		return err
	}
	defer m.mu.Unlock()
	n, err := m.findLocked(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return &fs.PathError{Op: "syncdir", Path: name, Err: err}
	}
	m.syncDirLocked(n)
	return nil
}

// Lock implements FS. A lock does not outlive a crash.
func (m *Mem) Lock(name string) (io.Closer, error) {
	if err := m.lock(Op{Kind: OpLock, Name: name}); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	n, err := m.openLocked(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil && m.locks[n] {
		err = ErrLocked
	}
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	m.locks[n] = true
	return &memLock{m: m, n: n, name: name}, nil
}

type memLock struct {
	m    *Mem
	n    *memNode
	name string
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if !l.m.locks[l.n] {
		return &fs.PathError{Op: "unlock", Path: l.name, Err: fs.ErrClosed}
	}
	delete(l.m.locks, l.n)
	if dir, elem, err := l.m.parentLocked(l.name); err == nil && dir.entries[elem] == l.n {
		l.m.changeLocked(dirChange{dir: dir, name: elem})
	}
	return nil
}

// memSpace is the size that a Mem reports, in bytes.
const memSpace = 1 << 40

// Space implements FS: a terabyte, less the bytes of all files.
func (m *Mem) Space(name string) (total, free int64, err error) {
	if err := m.rlock(Op{Kind: OpSpace, Name: name}); err != nil {
		return 0, 0, err
	}
	defer m.mu.RUnlock()
	if _, err := m.findLocked(name); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	return memSpace, memSpace - m.root.usedLocked(), nil
}

func (n *memNode) usedLocked() int64 {
	used := int64(len(n.data))
	for _, child := range n.entries {
		used += child.usedLocked()
	}
	return used
}

func (n *memNode) infoLocked(name string) fs.FileInfo {
	return fileInfo{name: name, size: int64(len(n.data)), mode: n.mode, modTime: n.modTime}
}
