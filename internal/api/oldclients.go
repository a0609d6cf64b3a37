package api

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// oldClientsMax bounds how many rows are kept; the requests beyond are counted as of "(others)".
const oldClientsMax = 1000

// An OldClient is a kind of request for which gregor keeps what Kafka 4 has given up: a version
// that Kafka 4 does not answer, or records that had to be converted between message formats.
type OldClient struct {
	ClientID        string // of the request
	Software        string // as ApiVersions 3 told it, or ""
	SoftwareVersion string
	API             string // Produce, Fetch or ListOffsets
	Version         int16
}

// An OldClientCount is how often it came.
type OldClientCount struct {
	OldClient
	Requests    int64
	Conversions int64 // sets and batches that were converted for it
}

// oldClients counts requests of old clients.
type oldClients struct {
	mu   sync.Mutex
	seen map[OldClient]*OldClientCount
	ids  map[string]bool // of old clients, which were logged
}

// OldClients returns what was counted since the start, in a stable order. Who switches off
// conversion, or replaces gregor with a Kafka 4, breaks these clients.
func (s *Server) OldClients() []OldClientCount {
	c := &s.oldClients
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]OldClientCount, 0, len(c.seen))
	for _, n := range c.seen {
		list = append(list, *n)
	}
	slices.SortFunc(list, func(a, b OldClientCount) int {
		return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), cmp.Compare(a.API, b.API), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Software, b.Software), cmp.Compare(a.SoftwareVersion, b.SoftwareVersion))
	})
	return list
}

// oldestOfKafka4 returns the first version of a key that Kafka 4 serves (KIP-896).
func oldestOfKafka4(key int16) int16 {
	switch kmsg.Key(key) {
	case kmsg.Produce:
		return 3
	case kmsg.Fetch:
		return 4
	case kmsg.ListOffsets:
		return 1
	}
	return 0
}

// noteOldClient counts a request, and logs the id of an old client that is new. A client of
// today that writes to a log of an old format is counted only.
func (s *Server) noteOldClient(r *Request, conversions int) {
	k := OldClient{ClientID: r.ClientID, API: kmsg.NameForKey(r.Key), Version: r.Version}
	if r.Conn != nil {
		software := r.Conn.Software()
		k.Software, k.SoftwareVersion = software.Name, software.Version
	}
	isOld := r.Version < oldestOfKafka4(r.Key)
	if s.oldClients.add(k, conversions, isOld) {
		s.Logger.Warn("old client: needs what Kafka 4 does not have", "client", k.ClientID, "software", k.Software,
			"softwareVersion", k.SoftwareVersion, "api", k.API, "version", k.Version)
	}
}

// add counts a request and reports whether it is the first of an old client with this id.
func (c *oldClients) add(k OldClient, conversions int, isOld bool) (isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen, c.ids = map[OldClient]*OldClientCount{}, map[string]bool{}
	}
	n := c.seen[k]
	if n == nil && len(c.seen) >= oldClientsMax {
		k = OldClient{ClientID: "(others)"}
		n = c.seen[k]
	}
	if n == nil {
		k.ClientID = strings.Clone(k.ClientID) // not what it is a part of
		n = &OldClientCount{OldClient: k}
		c.seen[k] = n
	}
	n.Requests++
	n.Conversions += int64(conversions)
	if !isOld || c.ids[k.ClientID] {
		return false
	}
	c.ids[n.ClientID] = true
	return true
}
