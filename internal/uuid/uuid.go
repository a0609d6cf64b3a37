// Package uuid holds Kafka's Uuid: 16 bytes, written as 22 characters of URL-safe
// base64 without padding (Kafka class org.apache.kafka.common.Uuid). Topics, log
// directories and broker incarnations are named by one.
package uuid

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/gregor-kafka/gregor/internal/random"
)

// UUID is compared by value; the zero value means "none".
type UUID [16]byte

// Ids that Kafka reserves for log directories. Every id whose high half is zero and
// whose low half is below 100 is reserved.
var (
	Zero       = UUID{}
	Unassigned = UUID{15: 1} // a replica whose log directory is not known yet
	Lost       = UUID{15: 2} // a replica whose log directory failed
	Metadata   = UUID{15: 1} // the topic id of __cluster_metadata
)

// New is From with the host's randomness, for tests; brokers are given theirs.
func New() UUID { return From(random.Host("ids")) }

// From returns a random version 4 id that is not reserved and whose text does not begin with '-', so
// that it can be given on a command line. The source never fails; the same bytes give the same id.
func From(source io.Reader) UUID {
	for {
		var u UUID
		random.Fill(source, u[:])
		u[6] = u[6]&0x0f | 0x40
		u[8] = u[8]&0x3f | 0x80
		if !u.IsReserved() && u.String()[0] != '-' {
			return u
		}
	}
}

// Parse reads the text form.
func Parse(s string) (UUID, error) {
	var u UUID
	if base64.RawURLEncoding.DecodedLen(len(s)) != len(u) {
		return Zero, fmt.Errorf("uuid %q: want 22 characters of base64url", s)
	}
	if _, err := base64.RawURLEncoding.Decode(u[:], []byte(s)); err != nil {
		return Zero, fmt.Errorf("uuid %q: %w", s, err)
	}
	return u, nil
}

// String returns the text form.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// IsZero reports whether u is "none".
func (u UUID) IsZero() bool { return u == Zero }

// IsReserved reports whether u is one of the ids that never name a real directory.
func (u UUID) IsReserved() bool {
	return binary.BigEndian.Uint64(u[:8]) == 0 && binary.BigEndian.Uint64(u[8:]) < 100
}
