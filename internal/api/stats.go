package api

import (
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metrics"
)

// requestStats counts the requests of one API key.
type requestStats struct {
	versions []atomic.Int64 // by version
	times    requestTimes
	errors   [maxErrorCode + 2]atomic.Int64
}

// requestTimes are those from the last byte of a request to the answer. A request that did not
// wait is in one histogram only: all its time is local.
type requestTimes struct {
	unwaiting metrics.Histogram
	waiting   struct{ total, local, remote metrics.Histogram }
}

// observe counts a request. worked is how much of its time went by before it waited, 0 if it did not.
func (t *requestTimes) observe(total, worked time.Duration) {
	if worked == 0 {
		t.unwaiting.Observe(total)
		return
	}
	t.waiting.total.Observe(total)
	t.waiting.local.Observe(worked)
	t.waiting.remote.Observe(total - worked)
}

func (t *requestTimes) total() *metrics.Histogram {
	return metrics.Sum(&t.unwaiting, &t.waiting.total)
}

func (t *requestTimes) local() *metrics.Histogram {
	return metrics.Sum(&t.unwaiting, &t.waiting.local)
}

// maxErrorCode is the largest error code that is counted on its own; a larger one counts as
// UNKNOWN_SERVER_ERROR, which is -1.
const maxErrorCode = 159

// countError counts an error code of an answer; 0 is none.
func (s *requestStats) countError(code int16) {
	switch {
	case code == 0:
	case code < -1 || code > maxErrorCode:
		s.errors[0].Add(1)
	default:
		s.errors[code+1].Add(1)
	}
}

// RequestStats is what was counted of the requests with one API key since the start.
type RequestStats struct {
	API      string
	Versions map[int16]int64 // how many requests of a version
	// Total times are those from the last byte of a request to the answer. They are local until
	// the request waits, if it does: for records, replicas, the disk or members of a group. Remote
	// has those that waited only.
	Total, Local, Remote *metrics.Histogram
	// Errors are counted by Kafka's names: each code of an answer that is not 0.
	Errors map[string]int64
}

// RequestStats returns what was counted, for all APIs that were asked for at least once.
func (s *Server) RequestStats() (list []RequestStats) {
	for _, a := range s.apis {
		if a == nil {
			continue
		}
		times := &a.stats.times
		r := RequestStats{
			API: kmsg.NameForKey(a.key), Versions: map[int16]int64{}, Errors: map[string]int64{},
			Total: times.total(), Local: times.local(), Remote: &times.waiting.remote,
		}
		for v := range a.stats.versions {
			if n := a.stats.versions[v].Load(); n > 0 {
				r.Versions[int16(v)] = n
			}
		}
		for i := range a.stats.errors {
			if n := a.stats.errors[i].Load(); n > 0 {
				r.Errors[errorName(int16(i-1))] += n
			}
		}
		if len(r.Versions) > 0 {
			list = append(list, r)
		}
	}
	return list
}

// errorName is the name that Kafka gives to a code today.
func errorName(code int16) string {
	if code == kerr.NotLeaderForPartition.Code {
		return "NOT_LEADER_OR_FOLLOWER"
	}
	if e := kerr.TypedErrorForCode(code); e != nil && (code == -1 || e.Code == code) {
		return e.Message
	}
	return strconv.Itoa(int(code))
}

// codeFields says where the error codes of a response are: in a field of the struct itself,
// and in those of slices of structs.
type codeFields struct {
	code   int // index of ErrorCode, or -1
	slices []codeSlice
}

type codeSlice struct {
	index  int
	fields *codeFields
}

// findCodes returns where a struct of kmsg has error codes, or nil if it has none.
func findCodes(t reflect.Type) *codeFields {
	found := &codeFields{code: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Name == "ErrorCode" && f.Type.Kind() == reflect.Int16:
			found.code = i
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			if inner := findCodes(f.Type.Elem()); inner != nil {
				found.slices = append(found.slices, codeSlice{i, inner})
			}
		}
	}
	if found.code < 0 && found.slices == nil {
		return nil
	}
	return found
}

// count counts the error codes of a response.
func (f *codeFields) count(v reflect.Value, stats *requestStats) {
	if f == nil {
		return
	}
	if f.code >= 0 {
		stats.countError(int16(v.Field(f.code).Int()))
	}
	for _, s := range f.slices {
		list := v.Field(s.index)
		for i := range list.Len() {
			s.fields.count(list.Index(i), stats)
		}
	}
}
