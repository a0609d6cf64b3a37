package api

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/record"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// writeRefusal writes an answer without partitions.
func (f *fetchWork) writeRefusal(w *wire.Response, err error) {
	f.stats().countError(code(err))
	f.writeHead(w, code(err), 0)
	w.Buf = wire.AppendArrayLen(w.Buf, 0, f.flexible)
	if f.flexible {
		w.Buf = append(w.Buf, 0)
	}
}

func (f *fetchWork) stats() *requestStats { return f.s.apis[kmsg.Fetch].stats }

func (f *fetchWork) writeHead(w *wire.Response, code int16, sessionID int32) {
	if f.version >= 1 {
		w.Buf = append(w.Buf, 0, 0, 0, 0) // throttle time
	}
	if f.version >= 7 {
		w.Buf = binary.BigEndian.AppendUint16(w.Buf, uint16(code))
		w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(sessionID))
	}
}

// write writes the answer. Partitions of one topic that follow each other share its entry.
func (f *fetchWork) write(w *wire.Response) {
	sessionID := int32(0)
	if f.session != nil && len(f.refs) > 0 {
		sessionID = f.session.ID
	}
	f.choose()
	f.writeHead(w, 0, sessionID)
	w.Buf = wire.AppendArrayLen(w.Buf, f.countTopics(), f.flexible)
	for list := f.answered; len(list) > 0; {
		n := 1
		for n < len(list) && sameTopic(list[0], list[n]) {
			n++
		}
		f.writeTopic(w, list[:n])
		list = list[n:]
	}
	if f.flexible {
		w.Buf = f.s.appendNodeEndpoints(w.Buf, f.leaders, f.listener)
	}
}

// choose finds what the answer has to say.
func (f *fetchWork) choose() {
	for _, p := range f.refs {
		if f.version >= 4 {
			f.adjust(p) // done for older ones
		}
		if partition := p.Partition(); partition != nil {
			partition.Stats().Add(replica.FetchRequests, 1)
		}
		if f.incremental && !p.Changed() {
			p.Result.Read.Slice.Release()
			continue
		}
		f.answered = append(f.answered, p)
	}
}

// adjust turns a result into what clients of this version may see.
func (f *fetchWork) adjust(p *replica.FetchPartition) {
	r := &p.Result
	if f.version >= 10 || r.Err != nil {
		return
	}
	if log, err := p.Partition().Log(); err == nil && log.Config().Compression == record.Zstd {
		f.refuse(r, record.ErrUnsupportedCompression)
	}
}

func (f *fetchWork) refuse(r *replica.FetchResult, err error) {
	r.Read.Slice.Release()
	*r = replica.FetchResult{Err: err}
}

func sameTopic(a, b *replica.FetchPartition) bool {
	return a.TopicID == b.TopicID && string(a.Name) == string(b.Name)
}

func (f *fetchWork) countTopics() (n int) {
	for i, p := range f.answered {
		if i == 0 || !sameTopic(f.answered[i-1], p) {
			n++
		}
	}
	return n
}

func (f *fetchWork) writeTopic(w *wire.Response, list []*replica.FetchPartition) {
	if f.version >= 13 {
		w.Buf = append(w.Buf, list[0].TopicID[:]...)
	} else {
		w.Buf = wire.AppendString(w.Buf, list[0].Name, f.flexible)
	}
	w.Buf = wire.AppendArrayLen(w.Buf, len(list), f.flexible)
	for _, p := range list {
		f.writePartition(w, p)
		if f.session != nil {
			f.session.Sent(p)
		}
	}
	if f.flexible {
		w.Buf = append(w.Buf, 0)
	}
}

// writePartition writes one partition. Records that cannot be read from the disk become an
// error of their partition.
func (f *fetchWork) writePartition(w *wire.Response, p *replica.FetchPartition) {
	if f.version < 4 {
		f.writeOldPartition(w, p)
		return
	}
	r := &p.Result
	mark := w.Mark()
	if r.Err == nil {
		size := r.Read.Slice.Size()
		f.writeFound(w, p, size)
		err := w.AppendSlice(r.Read.Slice)
		if err == nil {
			p.Partition().Stats().Add(replica.BytesOut, size)
			f.writePartitionTags(w, p)
			return
		}
		f.s.Logger.Error("fetch failed", "partition", p.Partition().ID(), "err", err)
		w.Rewind(mark)
		r.Err = commitlog.ErrStorage
	}
	f.writeFailed(w, p)
	f.writePartitionTags(w, p)
}

// writeOldPartition writes the next partition for a client before version 4.
func (f *fetchWork) writeOldPartition(w *wire.Response, p *replica.FetchPartition) {
	o := f.old[f.oldWritten]
	f.oldWritten++
	if p.Result.Err != nil {
		f.writeFailed(w, p)
		return
	}
	f.writeOldFound(w, p, o.size)
	if o.size > 0 {
		w.AppendBody(&o)
	}
}

func (f *fetchWork) writeOldFound(w *wire.Response, p *replica.FetchPartition, size int) {
	p.Partition().Stats().Add(replica.BytesOut, size)
	f.writeFound(w, p, size)
}

// writeFound writes what precedes the bytes of the records, which take size.
func (f *fetchWork) writeFound(w *wire.Response, p *replica.FetchPartition, size int) {
	r := &p.Result
	o := r.Read.Offsets
	w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(p.Index))
	w.Buf = append(w.Buf, 0, 0)
	w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(o.HighWatermark))
	if f.version >= 4 {
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(o.LastStable))
	}
	if f.version >= 5 {
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(o.LogStart))
	}
	if f.version >= 4 {
		f.writeAborted(w, r)
	}
	if f.version >= 11 {
		w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(preferred(r)))
	}
	w.Buf = wire.AppendArrayLen(w.Buf, size, f.flexible)
}

// preferred is the replica that the client is to read from, -1 for this one.
func preferred(r *replica.FetchResult) int32 {
	if r.Elsewhere {
		return r.Preferred
	}
	return -1
}

func (f *fetchWork) writeAborted(w *wire.Response, r *replica.FetchResult) {
	if f.req.Isolation != commitlog.ReadCommitted {
		w.Buf = wire.AppendNullArray(w.Buf, f.flexible)
		return
	}
	w.Buf = wire.AppendArrayLen(w.Buf, len(r.Read.Aborted), f.flexible)
	for i := range r.Read.Aborted {
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(r.Read.Aborted[i].ProducerID))
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(r.Read.Aborted[i].FirstOffset))
		if f.flexible {
			w.Buf = append(w.Buf, 0)
		}
	}
}

// writeFailed writes a partition with an error: no offset is known, and the records are
// empty, not null, which old clients could not read.
func (f *fetchWork) writeFailed(w *wire.Response, p *replica.FetchPartition) {
	c := f.fetchCode(p.Result.Err)
	f.stats().countError(c)
	if partition := p.Partition(); partition != nil {
		partition.Stats().Add(replica.FailedFetchRequests, 1)
	}
	w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(p.Index))
	w.Buf = binary.BigEndian.AppendUint16(w.Buf, uint16(c))
	w.Buf = binary.BigEndian.AppendUint64(w.Buf, 1<<64-1) // high watermark
	if f.version >= 4 {
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, 1<<64-1) // last stable offset
	}
	if f.version >= 5 {
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, 1<<64-1) // log start
	}
	if f.version >= 4 {
		w.Buf = wire.AppendNullArray(w.Buf, f.flexible)
	}
	if f.version >= 11 {
		w.Buf = binary.BigEndian.AppendUint32(w.Buf, 1<<32-1) // no preferred replica
	}
	w.Buf = wire.AppendArrayLen(w.Buf, 0, f.flexible)
}

// Tagged fields of a partition.
const (
	divergingEpochTag = 0
	currentLeaderTag  = 1
)

func (f *fetchWork) writePartitionTags(w *wire.Response, p *replica.FetchPartition) {
	r := &p.Result
	switch {
	case !f.flexible:
	case r.Err == nil && r.Diverging:
		w.Buf = append(w.Buf, 1, divergingEpochTag, 13)
		w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(r.DivergingEpoch))
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(r.DivergingEnd))
		w.Buf = append(w.Buf, 0)
	case f.namesLeader(r.Err):
		f.writeLeader(w, p)
	default:
		w.Buf = append(w.Buf, 0)
	}
}

func (f *fetchWork) writeLeader(w *wire.Response, p *replica.FetchPartition) {
	leader, epoch := f.s.leaderOf(p.Name, p.TopicID, p.Index)
	if leader < 0 {
		w.Buf = append(w.Buf, 0)
		return
	}
	if f.version >= 16 {
		f.leaders = append(f.leaders, leader)
	}
	w.Buf = appendLeaderTag(append(w.Buf, 1), currentLeaderTag, leader, epoch)
}
