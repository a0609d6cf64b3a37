package faultdir

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A client asks one broker one thing after the other.
type client struct {
	c    net.Conn
	sent int32
}

func dial(addr string, deadline time.Time) (*client, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{c: c}, c.SetDeadline(deadline)
}

func (c *client) close() { c.c.Close() }

// ask sends a request in a version and returns the answer.
func ask[A kmsg.Response](c *client, version int16, req kmsg.Request) (answer A, err error) {
	req.SetVersion(version)
	c.sent++
	if _, err := c.c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("faults")).AppendRequest(nil, req, c.sent)); err != nil {
		return answer, err
	}
	var size [4]byte
	if _, err := io.ReadFull(c.c, size[:]); err != nil {
		return answer, fmt.Errorf("%T: %w", req, err)
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.c, b); err != nil {
		return answer, err
	}
	if b = b[4:]; req.IsFlexible() {
		b = b[1:]
	}
	resp := req.ResponseKind()
	if err := resp.ReadFrom(b); err != nil {
		return answer, err
	}
	return resp.(A), nil
}
