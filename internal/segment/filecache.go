package segment

import (
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/gregor-kafka/gregor/vfs"
)

// A FileCache bounds the descriptors that segments hold open. The least recently used one is
// closed when a new one would exceed the limit; those that a Slice still needs are closed when
// it is released. When slices hold twice as many as the cache may, further ones hold none: they
// open the file for each read. So there are three times as many descriptors as the cache may hold
// at most, besides those of single operations. All methods are safe for concurrent use.
type FileCache struct {
	cache clockCache
	max   atomic.Int64
	open  atomic.Int64 // cached or in use
}

// NewFileCache returns a cache that holds at most maxFiles descriptors, besides those in use.
func NewFileCache(maxFiles int) *FileCache {
	c := &FileCache{}
	c.SetMax(maxFiles)
	return c
}

// SetMax changes how many descriptors the cache holds at most.
func (c *FileCache) SetMax(maxFiles int) {
	n := int64(max(maxFiles, 1))
	c.max.Store(n)
	c.cache.setBudget(n)
}

// crowded reports whether slices must do without descriptors.
func (c *FileCache) crowded() bool { return c.open.Load() > 2*c.max.Load() }

// CloseIdle closes the descriptors that nobody has used since the last call. Called every now
// and then, it leaves an idle partition without any.
func (c *FileCache) CloseIdle() { c.cache.evictIdle() }

// CloseUnused closes all descriptors that nobody is using this moment.
func (c *FileCache) CloseUnused() { c.cache.evictAll() }

// Len returns how many descriptors the cache holds.
func (c *FileCache) Len() int {
	n, _ := c.cache.len()
	return n
}

// Open returns how many descriptors are open, those in use included.
func (c *FileCache) Open() int { return int(c.open.Load()) }

// Caches are what the segments of one owner share, such as all of a broker.
type Caches struct {
	Files   *FileCache
	Indexes *IndexCache
}

// Sizes of the caches that NewCaches makes: far more descriptors than an active set of segments
// needs, and the indexes of some thousand segments.
const (
	DefaultFilesMax   = 512
	defaultIndexBytes = 64 << 20
)

// NewCaches returns empty caches.
func NewCaches() Caches {
	return Caches{Files: NewFileCache(DefaultFilesMax), Indexes: NewIndexCache(defaultIndexBytes)}
}

// CloseIdle closes the descriptors and drops the indexes that nobody has used since the last call.
func (c Caches) CloseIdle() {
	c.Files.CloseIdle()
	c.Indexes.DropIdle()
}

// defaultCaches are shared by all segments whose Config names no others.
var defaultCaches = NewCaches()

// CloseIdle is Caches.CloseIdle of those that all segments of the process share whose Config names
// no others.
func CloseIdle() { defaultCaches.CloseIdle() }

// An openFile is a descriptor with a count of its users, of which the cache is one.
type openFile struct {
	vfs.File
	cache *FileCache
	refs  atomic.Int32
	slot  slot
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
		f.cache.open.Add(-1)
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
	c.cache.open.Add(1)
	f := &openFile{File: file, cache: c.cache}
	f.refs.Store(2) // the cache and the caller
	f.slot = slot{cost: 1, drop: func() evict {
		c.cur.CompareAndSwap(f, nil)
		return f.release
	}}
	c.cur.Store(f)
	c.cache.cache.add(&f.slot)
	return f, nil
}

// close gives up the descriptor; users keep theirs. It can be opened no more.
func (c *cachedFile) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if f := c.cur.Load(); f != nil && c.cache.cache.remove(&f.slot) {
		c.cur.Store(nil)
		f.release()
	}
}
