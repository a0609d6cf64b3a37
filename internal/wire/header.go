package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metrics"
)

// A Request is one request of a client. It and its Body are valid until the Handler
// returns; what must live longer is copied.
type Request struct {
	Key, Version  int16
	CorrelationID int32
	ClientID      string // "" when the client sent null
	Listener      string // the name of the listener the connection came in by
	Conn          *Conn
	Body          []byte
	Received      metrics.Stopwatch // began when its last byte was there
	Worked        time.Duration     // from then until BeginWait; 0: it was not called
}

// BeginWait says that the Handler waits from now on, for records or for others.
func (r *Request) BeginWait() { r.Worked = max(r.Received.Elapsed(), 1) }

// Flexible reports whether the body uses compact lengths and tags.
func (r *Request) Flexible() bool { return flexible(r.Key, r.Version) }

const apiVersionsKey = 18

var errHeader = errors.New("header is cut short")

// flexibleSince holds, by API key, the first flexible version.
var flexibleSince = func() (since [kmsg.MaxKey + 1]int16) {
	for key := range since {
		since[key] = math.MaxInt16
		r := kmsg.RequestForKey(int16(key))
		if r == nil {
			continue
		}
		for v := r.MaxVersion(); v >= 0; v-- {
			if r.SetVersion(v); !r.IsFlexible() {
				break
			}
			since[key] = v
		}
	}
	return since
}()

func flexible(key, version int16) bool {
	return key >= 0 && int(key) < len(flexibleSince) && version >= flexibleSince[key]
}

// parseHeader splits a frame. The client id is a view of it.
//
// A client newer than us sends its own ApiVersions; that body is never read, and its tags
// may not be readable either, so both are left alone.
func parseHeader(frame []byte, r *Request) (clientID []byte, err error) {
	d := NewDecoder(frame)
	r.Key, r.Version, r.CorrelationID = d.Int16(), d.Int16(), d.Int32()
	clientID = d.String(false)
	if flexible(r.Key, r.Version) {
		tagged := d
		if d.SkipTags(); d.bad && r.Key == apiVersionsKey {
			d = tagged
		}
	}
	if d.bad {
		return nil, fmt.Errorf("%w: %d bytes", errHeader, len(frame))
	}
	r.Body = d.b
	return clientID, nil
}

// ParseRequest splits a request without its size, as one broker passes it on to another: its header and body.
// It has no connection.
func ParseRequest(frame []byte) (*Request, error) {
	r := &Request{}
	clientID, err := parseHeader(frame, r)
	r.ClientID = string(clientID)
	return r, err
}

// AppendRequest appends a request as ParseRequest reads it.
func AppendRequest(b []byte, r *Request) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(r.Key))
	b = binary.BigEndian.AppendUint16(b, uint16(r.Version))
	b = binary.BigEndian.AppendUint32(b, uint32(r.CorrelationID))
	if r.ClientID == "" {
		b = append(b, 0xff, 0xff) // null
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(len(r.ClientID)))
		b = append(b, r.ClientID...)
	}
	if r.Flexible() {
		b = append(b, 0) // no tags
	}
	return append(b, r.Body...)
}

// AppendResponseHeader appends the header of the answer to a request.
func AppendResponseHeader(b []byte, r *Request) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(r.CorrelationID))
	if r.answerHasTags() {
		b = append(b, 0)
	}
	return b
}

// ParseResponse returns the body of the answer to a request.
func ParseResponse(frame []byte, r *Request) (body []byte, err error) {
	d := NewDecoder(frame)
	correlation := d.Int32()
	if r.answerHasTags() {
		d.SkipTags()
	}
	if d.bad || correlation != r.CorrelationID {
		return nil, fmt.Errorf("%w: %d bytes, an answer to request %d", errHeader, len(frame), r.CorrelationID)
	}
	return d.b, nil
}

// answerHasTags: a client that asks for the versions does not know yet what the header looks like.
func (r *Request) answerHasTags() bool { return r.Key != apiVersionsKey && r.Flexible() }
