package api

import (
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Bounds of what is remembered of requests that are not served.
const (
	unservedMax         = 1000
	unservedClientIDMax = 100 // bytes
)

// An unservedRequest is a kind of request that closes its connection, as in Kafka: nothing on the
// wire says why, so the log does.
type unservedRequest struct {
	clientID     string
	key, version int16
}

// unserved remembers which kinds of requests were logged.
type unserved struct {
	mu   sync.Mutex
	seen map[unservedRequest]bool
}

// isNew reports whether a kind of request was not there before, of the first unservedMax kinds.
func (u *unserved) isNew(r unservedRequest) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen[r] || len(u.seen) >= unservedMax {
		return false
	}
	if u.seen == nil {
		u.seen = map[unservedRequest]bool{}
	}
	r.clientID = strings.Clone(r.clientID) // not what it is a part of
	u.seen[r] = true
	return true
}

// noteUnserved logs a request for an API or a version that is not served, once for each client id.
func (s *Server) noteUnserved(r *Request) {
	asked := unservedRequest{r.ClientID[:min(len(r.ClientID), unservedClientIDMax)], r.Key, r.Version}
	if !s.unserved.isNew(asked) {
		return
	}
	var address, software string
	if r.Conn != nil {
		address, software = r.Conn.RemoteAddr().String(), r.Conn.Software().Name
	}
	s.Logger.Warn("request is not served, the connection is closed", "api", apiName(r.Key), "version", r.Version,
		"client", asked.clientID, "software", software, "address", address)
}

// apiName is the name of an API key, or its number if nobody knows it.
func apiName(key int16) string {
	if kmsg.RequestForKey(key) == nil {
		return strconv.Itoa(int(key))
	}
	return kmsg.NameForKey(key)
}
