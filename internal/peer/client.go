package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Options are what a Client is made of.
type Options struct {
	// Dial connects to the other side and logs in, as far as that asks for it.
	Dial func(ctx context.Context) (net.Conn, error)

	ClientID  string
	Timeout   time.Duration // of a request with its answer and the connection it may need; 0: none but the caller's
	AnswerMax int           // bytes of an answer, 64 MiB when 0
}

// defaultAnswerMax bounds what the other side can make us allocate.
const defaultAnswerMax = 64 << 20

// A Client is a connection to another broker. Its methods may be called concurrently; requests wait for
// their turn.
type Client struct {
	o         Options
	formatter *kmsg.RequestFormatter
	life      context.Context // ends with Close
	end       context.CancelFunc
	turn      chan struct{} // holds one: whoever has it owns what is below

	nc          net.Conn // nil: not connected
	versions    map[int16]versionRange
	correlation int32
}

// A versionRange is what the other side serves of an API.
type versionRange struct{ min, max int16 }

// ErrVersion is that of a request that the other side does not serve in any version that was offered.
var ErrVersion = errors.New("the other side does not serve a version of the request")

// New returns a Client that is not connected yet.
func New(o Options) *Client {
	if o.AnswerMax == 0 {
		o.AnswerMax = defaultAnswerMax
	}
	c := &Client{o: o, formatter: kmsg.NewRequestFormatter(kmsg.FormatterClientID(o.ClientID)), turn: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	c.turn <- struct{}{}
	return c
}

// Request sends a request in the highest version that both sides have, at most max, and returns the answer.
func (c *Client) Request(ctx context.Context, req kmsg.Request, max int16) (kmsg.Response, error) {
	timeout := c.o.Timeout
	if timeout == 0 {
		timeout = math.MaxInt64
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	if c.life.Err() != nil {
		return nil, net.ErrClosed
	}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	v, served := c.versions[req.Key()]
	version := min(v.max, max, req.MaxVersion())
	if !served || version < v.min {
		return nil, fmt.Errorf("%w: %s up to version %d", ErrVersion, kmsg.NameForKey(req.Key()), max)
	}
	req.SetVersion(version)
	return c.roundTrip(ctx, req)
}

// Close ends the connection and the requests that wait for it.
func (c *Client) Close() {
	c.end()
	<-c.turn
	c.disconnect()
	c.turn <- struct{}{}
}

func (c *Client) disconnect() {
	if c.nc != nil {
		c.nc.Close()
		c.nc = nil
	}
}

// connect connects unless that is done, and asks for the versions.
func (c *Client) connect(ctx context.Context) error {
	if c.nc != nil {
		return nil
	}
	nc, err := c.o.Dial(ctx)
	if err != nil {
		return err
	}
	c.nc = nc
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = 0 // the answer to which nobody can misread
	resp, err := c.roundTrip(ctx, req)
	if err != nil {
		return fmt.Errorf("ApiVersions: %w", err)
	}
	c.versions = map[int16]versionRange{}
	for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		c.versions[k.ApiKey] = versionRange{k.MinVersion, k.MaxVersion}
	}
	return nil
}

// roundTrip sends a request in the version that it has. After an error the connection is closed.
func (c *Client) roundTrip(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	nc := c.nc // which may be closed, and forgotten, while the function runs
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	resp, err := c.exchange(req)
	if !stop() { // nothing can be read or written any more
		err = ctx.Err()
	}
	if err != nil {
		c.disconnect()
		return nil, err
	}
	return resp, nil
}

func (c *Client) exchange(req kmsg.Request) (kmsg.Response, error) {
	c.correlation++
	if _, err := c.nc.Write(c.formatter.AppendRequest(nil, req, c.correlation)); err != nil {
		return nil, err
	}
	body, err := c.readAnswer()
	if err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		if body, err = skipTags(body); err != nil {
			return nil, err
		}
	}
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("answer to %s version %d: %w", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	return resp, nil
}

// readAnswer reads a frame and checks whose answer it is.
func (c *Client) readAnswer() ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(head[:])))
	if size < 4 || size > c.o.AnswerMax {
		return nil, fmt.Errorf("an answer of %d bytes: want 4 to %d", size, c.o.AnswerMax)
	}
	if got := int32(binary.BigEndian.Uint32(head[4:])); got != c.correlation {
		return nil, fmt.Errorf("the answer is to request %d, not to %d", got, c.correlation)
	}
	return readBody(c.nc, size-4)
}

// bodyStep is how much of an answer is allocated before its bytes have come.
const bodyStep = 1 << 20

func readBody(r io.Reader, size int) ([]byte, error) {
	body := make([]byte, 0, min(size, bodyStep))
	for len(body) < size {
		n := min(size-len(body), bodyStep)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(r, body[len(body)-n:]); err != nil {
			return nil, err
		}
	}
	return body, nil
}

var errHeader = errors.New("the header of the answer makes no sense")

// skipTags reads over the tags of a response header.
func skipTags(b []byte) ([]byte, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, errHeader
	}
	b = b[n:]
	for range count {
		_, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errHeader
		}
		size, m := binary.Uvarint(b[n:])
		if m <= 0 || size > uint64(len(b)-n-m) {
			return nil, errHeader
		}
		b = b[n+m+int(size):]
	}
	return b, nil
}
