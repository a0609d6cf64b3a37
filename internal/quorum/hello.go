package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

const (
	// HelloKey is the API key of the request that opens a connection between two voters. No key of Kafka's
	// comes near it, and nobody is told of it by ApiVersions.
	HelloKey = 26482

	// ClusterKey is that of the question in which cluster a voter is, by one that is in none yet. It has no
	// body; the answer is a string.
	ClusterKey = 26483
)

// A Hello is the first that a voter says to another: in which cluster it is, who it is, whom it wants,
// and how it numbers its log. It is the body of a request of Kafka's protocol, so that it goes
// through whatever a listener asks of its clients; then the connection is raft's.
//
//	cluster id        string, as Kafka's
//	from, to          node id (int32), id of its metadata directory (16 bytes, zero: not known)
//	anchor            offset and index (int64 each) of a committed batch, -1 when the log has none
//
// The answer is a string that says why not, empty when the connection is raft's from now on.
type Hello struct {
	ClusterID string
	From, To  Identity
	anchor    anchorAt
}

// An Identity is who a voter is: a disk that was reformatted is another voter.
type Identity struct {
	NodeID      int32
	DirectoryID uuid.UUID // of the metadata directory; zero: not known
}

// String names the voter as Kafka's tools do.
func (i Identity) String() string {
	if i.DirectoryID.IsZero() {
		return fmt.Sprintf("node %d", i.NodeID)
	}
	return fmt.Sprintf("node %d with directory %s", i.NodeID, i.DirectoryID)
}

// An anchorAt says which index the entry before an offset has.
type anchorAt struct {
	offset int64
	index  int64
}

var errHello = errors.New("a malformed hello")

// helloMax bounds a cluster id and a refusal.
const helloMax = 1 << 10

func appendString(b []byte, s string) []byte {
	s = s[:min(len(s), helloMax)]
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// appendTo appends the body of the request.
func (h Hello) appendTo(b []byte) []byte {
	b = appendString(b, h.ClusterID)
	for _, who := range []Identity{h.From, h.To} {
		b = binary.BigEndian.AppendUint32(b, uint32(who.NodeID))
		b = append(b, who.DirectoryID[:]...)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(h.anchor.offset))
	return binary.BigEndian.AppendUint64(b, uint64(h.anchor.index))
}

// helloTail is how long a body is behind the cluster id.
const helloTail = 2*(4+16) + 2*8

// ParseHello reads the body of a request.
func ParseHello(body []byte) (h Hello, err error) {
	if len(body) < 2 {
		return h, errHello
	}
	n := int(binary.BigEndian.Uint16(body))
	if body = body[2:]; n > helloMax || len(body) != n+helloTail {
		return h, errHello
	}
	h.ClusterID, body = string(body[:n]), body[n:]
	for _, who := range []*Identity{&h.From, &h.To} {
		who.NodeID = int32(binary.BigEndian.Uint32(body))
		copy(who.DirectoryID[:], body[4:])
		body = body[4+16:]
	}
	h.anchor.offset, h.anchor.index = int64(binary.BigEndian.Uint64(body)), int64(binary.BigEndian.Uint64(body[8:]))
	return h, nil
}

// AppendHelloAnswer appends the answer to a Hello.
func AppendHelloAnswer(b []byte, refusal error) []byte {
	if refusal == nil {
		return appendString(b, "")
	}
	return appendString(b, refusal.Error())
}

// AppendClusterAnswer appends the answer to the question for the cluster id, "" when there is none yet.
func AppendClusterAnswer(b []byte, clusterID string) []byte { return appendString(b, clusterID) }

// exchange says hello on a new connection. A refusal of the other side's is a *RefusedError.
func exchange(nc net.Conn, h Hello) error {
	refusal, err := roundTrip(nc, HelloKey, h.appendTo(nil))
	if err == nil && refusal != "" {
		err = &RefusedError{By: h.To, Reason: refusal}
	}
	return err
}

// roundTrip sends the first request on a connection and returns its answer, a string.
func roundTrip(nc net.Conn, key uint16, body []byte) (answer string, err error) {
	const correlation, client = 1, "gregor-voter"
	b := make([]byte, 4, 256)
	b = binary.BigEndian.AppendUint16(b, key)
	b = binary.BigEndian.AppendUint16(b, 0) // version
	b = binary.BigEndian.AppendUint32(b, correlation)
	b = appendString(b, client)
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	if _, err := nc.Write(b); err != nil {
		return "", err
	}
	var head [4 + 4 + 2]byte // size, correlation, length of the string
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return "", err
	}
	size, n := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint16(head[8:])
	if size != 6+uint32(n) || n > helloMax || binary.BigEndian.Uint32(head[4:]) != correlation {
		return "", fmt.Errorf("%s answers a voter with something else", nc.RemoteAddr())
	}
	text := make([]byte, n)
	_, err = io.ReadFull(nc, text)
	return string(text), err
}

// A RefusedError is a voter's refusal to talk to this one.
type RefusedError struct {
	By     Identity
	Reason string
}

// Error implements error.
func (e *RefusedError) Error() string { return fmt.Sprintf("%v refuses: %s", e.By, e.Reason) }

// check compares a Hello with who this node is.
func (h Hello) check(cluster string, self Identity) error {
	switch {
	case h.ClusterID != cluster:
		return fmt.Errorf("node %d is of cluster %q, %v of cluster %q", h.From.NodeID, h.ClusterID, self, cluster)
	case h.To.NodeID != self.NodeID || !h.To.DirectoryID.IsZero() && h.To.DirectoryID != self.DirectoryID:
		return fmt.Errorf("this is %v, node %d looks for %v", self, h.From.NodeID, h.To)
	case h.From.NodeID == self.NodeID:
		return fmt.Errorf("two nodes have the id %d", self.NodeID)
	}
	return nil
}
