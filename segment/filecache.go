package segment

import (
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/vfs"
)

// A FileCache bounds the descriptors that segments hold open. The least recently used one is
// closed when a new one would exceed the limit; those that a Slice still needs are closed when
// it is released. All methods are safe for concurrent use.
type FileCache struct{ clock clock }

// NewFileCache returns a cache that holds at most maxFiles descriptors, besides those in use.
func NewFileCache(maxFiles int) *FileCache {
	return &FileCache{clock{budget: int64(max(maxFiles, 1))}}
}

// CloseIdle closes the descriptors that nobody has used since the last call. Called every now
// and then, it leaves an idle partition without any.
func (c *FileCache) CloseIdle() { c.clock.evictIdle() }

// Len returns how many descriptors the cache holds.
func (c *FileCache) Len() int {
	n, _ := c.clock.len()
	return n
}

// CloseIdle closes the descriptors and drops the indexes that nobody has used since the last
// call, of the caches that all segments of the process share.
func CloseIdle() {
	defaultFiles.CloseIdle()
	defaultIndexes.DropIdle()
}

// defaultFiles is shared by all segments whose Config names no other. The limit leaves room
// for sockets below the common 1,024 and is far more than an active set of segments needs.
var defaultFiles = NewFileCache(512)

// An openFile is a descriptor with a count of its users, of which the cache is one.
type openFile struct {
	vfs.File
	refs atomic.Int32
	slot slot
}

// retain adds a user, unless the last one has gone.
func (f *openFile) retain() bool {
	for {
		n := f.refs.Load()
		if n == 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release takes a user away; the last one closes. Nothing is lost when that fails: what has to
// be durable was synced before.
func (f *openFile) release() {
	switch n := f.refs.Add(-1); {
	case n == 0:
		f.Close()
	case n < 0:
		panic("BUG: segment file released twice")
	}
}

// A cachedFile opens a file when it is needed and lets a FileCache close it again.
type cachedFile struct {
	cache  *FileCache
	opener func() (vfs.File, error)
	cur    atomic.Pointer[openFile] // holds one of the references, or nil

	mu     sync.Mutex // held while opening
	closed bool       // guarded by mu
}

// acquire returns the open file; the caller releases it. It takes no lock when the file is
// open already.
func (c *cachedFile) acquire() (*openFile, error) {
	if f := c.cur.Load(); f != nil && f.retain() {
		f.slot.use()
		return f, nil
	}
	return c.open()
}

func (c *cachedFile) open() (*openFile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.cur.Load(); f != nil && f.retain() {
		return f, nil
	}
	if c.closed {
		return nil, fs.ErrClosed
	}
	file, err := c.opener()
	if err != nil {
		return nil, err
	}
	f := &openFile{File: file}
	f.refs.Store(2) // the cache and the caller
	f.slot = slot{cost: 1, drop: func() evict {
		c.cur.CompareAndSwap(f, nil)
		return f.release
	}}
	c.cur.Store(f)
	c.cache.clock.add(&f.slot)
	return f, nil
}

// close gives up the descriptor; users keep theirs. It can be opened no more.
func (c *cachedFile) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if f := c.cur.Load(); f != nil && c.cache.clock.remove(&f.slot) {
		c.cur.Store(nil)
		f.release()
	}
}
