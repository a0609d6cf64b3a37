package broker

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzRequests sends a frame to a broker, whatever it asks for: a broker never falls over, and
// what it answers can be read. State is kept from one input to the next, as in life.
func FuzzRequests(f *testing.F) {
	b := start(f, f.TempDir(), "log.flush.scheduler.interval.ms=9223372036854775807", "group.initial.rebalance.delay.ms=0")
	for key := range int16(kmsg.MaxKey + 1) {
		req := kmsg.RequestForKey(key)
		if req == nil || key == int16(kmsg.ControlledShutdown) {
			continue
		}
		if produce, ok := req.(*kmsg.ProduceRequest); ok {
			produce.Acks = 1 // else there is no answer
		}
		for v := int16(0); v <= req.MaxVersion(); v++ {
			req.SetVersion(v)
			f.Add(key, v, req.AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		req := kmsg.RequestForKey(key)
		if req == nil {
			return // what FuzzHeader looks at
		}
		req.SetVersion(version)
		c, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(frameOf(req, body)); err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(time.Second)) // a fetch, or a member of a group, may wait for longer
		readAnswer(t, c, req)
		select {
		case <-b.Done():
			t.Error("the broker has stopped")
		default:
		}
	})
}

// frameOf is a request with a body as given.
func frameOf(req kmsg.Request, body []byte) []byte {
	head := []byte{0, 0, 0, 0}
	head = binary.BigEndian.AppendUint16(head, uint16(req.Key()))
	head = binary.BigEndian.AppendUint16(head, uint16(req.GetVersion()))
	head = append(head, 0, 0, 0, 1, 0, 4, 'f', 'u', 'z', 'z')
	if req.IsFlexible() {
		head = append(head, 0)
	}
	frame := append(head, body...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// readAnswer reads the answer, if one comes.
func readAnswer(t *testing.T, c net.Conn, req kmsg.Request) {
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return // refused with the end of the connection, or it takes its time
	}
	answer := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(c, answer); err != nil {
		t.Fatal(err)
	}
	if kmsg.Key(req.Key()) == kmsg.ApiVersions {
		return // answered in version 0 when the version is not known
	}
	if req.IsFlexible() {
		answer = answer[1:]
	}
	resp := req.ResponseKind()
	if err := resp.ReadFrom(answer); err != nil {
		t.Errorf("%T version %d: %v in the answer %x", req, req.GetVersion(), err, answer)
	}
}
