package compaction

import (
	"sync/atomic"
)

// A Progress is how far a cleaning has come. The cleaning adds to it after each chunk, and
// anybody may look. The zero value is the beginning.
type Progress struct {
	MapBytes     atomic.Int64 // read to build the map
	ReadBytes    atomic.Int64 // read to rewrite
	WrittenBytes atomic.Int64
	Records      atomic.Int64 // read to rewrite
}
