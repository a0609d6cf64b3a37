package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/logtest"
	"github.com/gregor-kafka/gregor/internal/record"
)

// A bystander writes and reads over one connection while others misbehave, and finds every
// record where it put it.
type bystander struct {
	stop   chan struct{}
	done   sync.WaitGroup
	rounds int
}

func watch(t *testing.T, b *Broker) *bystander {
	createTopic(t, admin(t, b), "bystander")
	w := &bystander{stop: make(chan struct{})}
	c := dial(t, b)
	w.done.Go(func() {
		for {
			select {
			case <-w.stop:
				return
			default:
			}
			if err := w.round(c); err != nil {
				t.Errorf("round %d of the bystander: %v", w.rounds, err)
				return
			}
			w.rounds++
		}
	})
	return w
}

func (w *bystander) round(c *wireClient) error {
	value := []byte(fmt.Sprint("value ", w.rounds))
	builder := record.NewBuilder(record.BuilderOptions{})
	if err := builder.Append(record.Record{Timestamp: time.Now().UnixMilli(), Value: value}); err != nil {
		return err
	}
	for _, req := range []kmsg.Request{produceRequest("bystander", -1, builder.Build()), fetchRequest("bystander", int64(w.rounds), 1000)} {
		if _, err := c.c.Write(c.frame(9, req)); err != nil {
			return err
		}
		resp, err := c.read(c.correlation, req)
		if err != nil {
			return err
		}
		switch r := resp.(type) {
		case *kmsg.ProduceResponse:
			if p := r.Topics[0].Partitions[0]; p.ErrorCode != 0 || p.BaseOffset != int64(w.rounds) {
				return fmt.Errorf("produce: error %d, offset %d", p.ErrorCode, p.BaseOffset)
			}
		case *kmsg.FetchResponse:
			if p := r.Topics[0].Partitions[0]; p.ErrorCode != 0 || !bytes.Contains(p.RecordBatches, value) {
				return fmt.Errorf("fetch: error %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
			}
		}
	}
	return nil
}

// end stops the bystander, which must have got on.
func (w *bystander) end(t *testing.T) {
	t.Helper()
	close(w.stop)
	w.done.Wait()
	if w.rounds == 0 {
		t.Error("the bystander did nothing")
	}
}

// closedAfter writes bytes on a connection of its own and expects the broker to close it
// without an answer.
func closedAfter(t *testing.T, b *Broker, what string, sent []byte) {
	t.Helper()
	c := dial(t, b)
	defer c.c.Close()
	c.c.Write(sent) // may fail: the broker need not read all of it
	got, err := io.ReadAll(c.c)
	if len(got) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%s: answered with %d bytes, %v, want the connection closed", what, len(got), err)
	}
}

func sized(size int32, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(size)), body...)
}

// header is a frame with a request header of version 1 and a body.
func header(key, version int16, body ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = append(b, 0, 0, 0, 1, 0, 1, 'x')
	b = append(b, body...)
	return sized(int32(len(b)), b...)
}

func TestHostileFrames(t *testing.T) {
	b := start(t, t.TempDir(), "socket.request.max.bytes=1000000")
	w := watch(t, b)
	for _, size := range []int32{-1, math.MinInt32, 0, 1, 3, 7, 1_000_001, math.MaxInt32} {
		closedAfter(t, b, fmt.Sprint("size ", size), sized(size, make([]byte, 100)...))
	}
	closedAfter(t, b, "HTTP", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	closedAfter(t, b, "TLS", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"+strings.Repeat("r", 500)))
	for _, key := range []int16{-1, 80, 1000, math.MaxInt16, math.MinInt16} {
		closedAfter(t, b, fmt.Sprint("key ", key), header(key, 0))
	}
	for _, v := range [][2]int16{{0, 99}, {1, -1}, {3, 1000}, {19, math.MinInt16}, {18, -1}, {50, 7}} {
		closedAfter(t, b, fmt.Sprintf("version %d of key %d", v[1], v[0]), header(v[0], v[1]))
	}
	closedAfter(t, b, "client id beyond the frame", sized(10, 0, 3, 0, 0, 0, 0, 0, 1, 0x7f, 0xff))
	closedAfter(t, b, "client id of -2 bytes", sized(10, 0, 3, 0, 0, 0, 0, 0, 1, 0xff, 0xfe))
	closedAfter(t, b, "tags without end", header(3, 12, 0xff, 0xff, 0xff, 0xff, 0x0f))
	closedAfter(t, b, "a body of many topics", header(3, 0, 0x7f, 0xff, 0xff, 0xff))
	closedAfter(t, b, "a body of many topics, compact", header(3, 12, 0, 0xff, 0xff, 0xff, 0xff, 0x0f))

	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		garbage := make([]byte, 4+rng.IntN(300))
		for j := range garbage {
			garbage[j] = byte(rng.Uint32())
		}
		binary.BigEndian.PutUint32(garbage, uint32(len(garbage)-4))
		if i%2 == 0 && len(garbage) >= 8 { // a key and a version that are served
			binary.BigEndian.PutUint16(garbage[4:], uint16(rng.IntN(76)))
			binary.BigEndian.PutUint16(garbage[6:], uint16(rng.IntN(4)))
		}
		anyEnd(t, b, garbage)
	}
	w.end(t)
}

// anyEnd sends bytes and hangs up. Whatever they are, the broker ends the connection.
func anyEnd(t *testing.T, b *Broker, sent []byte) {
	t.Helper()
	c := dial(t, b)
	defer c.c.Close()
	c.c.Write(sent)
	c.c.(*net.TCPConn).CloseWrite()
	if _, err := io.ReadAll(c.c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after %x: %v", sent[:min(len(sent), 40)], err)
	}
}

// Valid requests cut at every byte, with a size that fits what is left, end the connection
// or are answered; none harms anybody else.
func TestCutRequests(t *testing.T) {
	b := start(t, t.TempDir())
	createTopic(t, admin(t, b), "t")
	w := watch(t, b)
	c := dial(t, b)
	meta := kmsg.NewPtrMetadataRequest()
	meta.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("t")}}
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group = "g"
	commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}}}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: "u", NumPartitions: 1, ReplicationFactor: 1}}
	create.ValidateOnly = true
	for _, v := range []struct {
		version int16
		req     kmsg.Request
	}{
		{9, produceRequest("t", -1, logtest.Values(t, record.BuilderOptions{}, "v"))}, {3, produceRequest("t", -1, logtest.Values(t, record.BuilderOptions{}, "v"))},
		{12, fetchRequest("t", 0, 1000)}, {4, fetchRequest("t", 0, 1000)},
		{12, meta}, {8, commit}, {7, create}, {3, kmsg.NewPtrApiVersionsRequest()},
	} {
		whole := c.frame(v.version, v.req)
		for size := range len(whole) - 4 {
			cut := slices.Clone(whole[:4+size])
			binary.BigEndian.PutUint32(cut, uint32(size))
			anyEnd(t, b, cut)
			if size%8 == 0 {
				anyEnd(t, b, whole[:4+size]) // a size that does not fit: the rest never comes
			}
		}
	}
	if end := endOffset(t, admin(t, b), "t"); end != 0 {
		t.Errorf("a cut Produce was taken: the log ends at %d", end)
	}
	w.end(t)
}

// Batches that are broken in any way are refused with a code, on a connection that goes on.
func TestBrokenBatches(t *testing.T) {
	b := start(t, t.TempDir())
	createTopic(t, admin(t, b), "t")
	w := watch(t, b)
	c := dial(t, b)
	good := logtest.Values(t, record.BuilderOptions{}, "a", "b", "c")
	refuse := func(what string, set []byte) {
		t.Helper()
		code := c.produce("t", set).ErrorCode
		switch err := kerr.ErrorForCode(code); {
		case code == 0:
			t.Errorf("%s: accepted", what)
		case !slices.Contains([]error{kerr.CorruptMessage, kerr.InvalidRecord, kerr.UnsupportedCompressionType, kerr.TransactionalIDAuthorizationFailed}, err):
			t.Errorf("%s: %v", what, err)
		}
	}
	for size := range good {
		refuse(fmt.Sprint("cut at ", size), good[:size])
	}
	for i := record.LogOverhead + 4; i < len(good); i++ { // from the magic byte on all is sealed or fixed
		flipped := slices.Clone(good)
		flipped[i] ^= 0x10
		refuse(fmt.Sprint("a bit of byte ", i), flipped)
	}
	for _, size := range []int32{-1, 0, 13, 48, int32(len(good)), math.MaxInt32} {
		lying := slices.Clone(good)
		binary.BigEndian.PutUint32(lying[8:], uint32(size))
		refuse(fmt.Sprint("size ", size), lying)
	}
	refuse("garbage behind", append(slices.Clone(good), 1, 2, 3))
	refuse("two batches", append(slices.Clone(good), good...))
	refuse("a null set", nil)
	if first := c.mustProduce("t", good); first != 0 {
		t.Errorf("the good batch is at %d", first)
	}
	w.end(t)
}

// connections returns how many are open.
func connections(b *Broker) (n int) {
	for _, l := range b.server.Load().Stats().Listeners {
		n += l.Connections
	}
	return n
}

// Connections by the thousand, opened and closed, silent or in the middle of a request, are
// forgotten when they are gone.
func TestManyConnections(t *testing.T) {
	b := start(t, t.TempDir())
	createTopic(t, admin(t, b), "t")
	w := watch(t, b)
	before := connections(b)
	request := dial(t, b).frame(9, produceRequest("t", -1, logtest.Values(t, record.BuilderOptions{}, strings.Repeat("x", 1000))))
	for i := range 2000 {
		c, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		switch i % 4 {
		case 1:
			c.Write(request[:i%len(request)])
		case 2:
			c.Write(request)
		case 3:
			c.(*net.TCPConn).SetLinger(0) // a reset instead of an end
		}
		c.Close()
	}
	var open []net.Conn
	for i := range 300 {
		c, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c.Write(request[:i%len(request)])
		open = append(open, c)
	}
	dial(t, b).mustProduce("t", logtest.Values(t, record.BuilderOptions{}, "beside 300 half requests"))
	for _, c := range open {
		c.Close()
	}
	eventually(t, "connections that are gone are forgotten", func() bool { return connections(b) < before+10 })
	w.end(t)
}

// max.connections closes who comes too late, and nobody else.
func TestConnectionLimit(t *testing.T) {
	b := start(t, t.TempDir(), "max.connections.per.ip=5")
	var served []*wireClient
	for range 5 {
		c := dial(t, b)
		call[*kmsg.ApiVersionsResponse](c, 2, kmsg.NewPtrApiVersionsRequest())
		served = append(served, c)
	}
	closedAfter(t, b, "the sixth connection", nil)
	for _, c := range served {
		call[*kmsg.ApiVersionsResponse](c, 2, kmsg.NewPtrApiVersionsRequest())
	}
	served[0].c.Close()
	eventually(t, "a place is free", func() bool { return connections(b) < 5 })
	call[*kmsg.ApiVersionsResponse](dial(t, b), 2, kmsg.NewPtrApiVersionsRequest())
}

// Limits of connections change while the broker runs, and are what they were after a restart.
func TestConnectionLimitsChange(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	first := dial(t, b)
	set := func(key, value string) error {
		t.Helper()
		answers, err := kadm.NewClient(connect(t, b)).AlterBrokerConfigs(testContext(t), []kadm.AlterConfig{{Name: key, Value: &value}})
		if err != nil {
			t.Fatal(err)
		}
		return answers[0].Err
	}
	if err := set("max.connections.per.ip", "0"); !errors.Is(err, kerr.InvalidRequest) {
		t.Errorf("nobody may come: got %v, want %v", err, kerr.InvalidRequest)
	}
	if err := set("max.connections.per.ip.overrides", "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	closedAfter(t, b, "a connection beyond the limit of its address", nil)
	call[*kmsg.ApiVersionsResponse](first, 2, kmsg.NewPtrApiVersionsRequest())
	stop(t, b)
	b = start(t, dir)
	call[*kmsg.ApiVersionsResponse](dial(t, b), 2, kmsg.NewPtrApiVersionsRequest())
	closedAfter(t, b, "a connection beyond the limit after a restart", nil)
}
