package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker is the other side: it answers each request with what answer returns, nil for nothing.
type broker struct {
	t      *testing.T
	answer func(key, version int16, correlation int32, body []byte) []byte
	dialed int
}

// client returns a Client that is connected to it when it asks.
func (b *broker) client(o Options) *Client {
	o.ClientID = "broker-1"
	o.Dial = func(context.Context) (net.Conn, error) {
		b.dialed++
		near, far := net.Pipe()
		go b.serve(far)
		return near, nil
	}
	c := New(o)
	b.t.Cleanup(c.Close)
	return c
}

func (b *broker) serve(nc net.Conn) {
	defer nc.Close()
	for {
		var size [4]byte
		if _, err := io.ReadFull(nc, size[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(nc, frame); err != nil {
			return
		}
		key, version := int16(binary.BigEndian.Uint16(frame)), int16(binary.BigEndian.Uint16(frame[2:]))
		correlation := int32(binary.BigEndian.Uint32(frame[4:]))
		if answer := b.answer(key, version, correlation, frame[8:]); answer != nil {
			nc.Write(answer)
		}
	}
}

// framed is an answer in its frame; tags are those of its header.
func framed(correlation int32, tags []byte, resp kmsg.Response) []byte {
	body := binary.BigEndian.AppendUint32(nil, uint32(correlation))
	body = resp.AppendTo(append(body, tags...))
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// versionsAnswer says that Metadata is served in versions 3 to 12, and Heartbeat in 0 to 3.
func versionsAnswer(correlation int32) []byte {
	resp := kmsg.NewPtrApiVersionsResponse()
	for _, k := range [][3]int16{{int16(kmsg.Metadata), 3, 12}, {int16(kmsg.Heartbeat), 0, 3}} {
		key := kmsg.NewApiVersionsResponseApiKey()
		key.ApiKey, key.MinVersion, key.MaxVersion = k[0], k[1], k[2]
		resp.ApiKeys = append(resp.ApiKeys, key)
	}
	return framed(correlation, nil, resp)
}

// answering answers ApiVersions, and the rest by f.
func answering(t *testing.T, f func(version int16, correlation int32) []byte) *broker {
	return &broker{t: t, answer: func(key, version int16, correlation int32, _ []byte) []byte {
		if key == int16(kmsg.ApiVersions) {
			return versionsAnswer(correlation)
		}
		return f(version, correlation)
	}}
}

// metadataOf answers with the cluster id "c" and a controller whose id is the version.
func metadataOf(tags ...byte) func(version int16, correlation int32) []byte {
	return func(version int16, correlation int32) []byte {
		resp := kmsg.NewPtrMetadataResponse()
		resp.Version, resp.ControllerID = version, int32(version)
		if version < 9 {
			tags = nil
		}
		return framed(correlation, tags, resp)
	}
}

func request(t *testing.T, c *Client, max int16) (int32, error) {
	resp, err := c.Request(t.Context(), kmsg.NewPtrMetadataRequest(), max)
	if err != nil {
		return -1, err
	}
	return resp.(*kmsg.MetadataResponse).ControllerID, nil
}

// The highest version that both sides have, and the caller allows, is used; one connection is enough.
func TestRequest(t *testing.T) {
	b := answering(t, metadataOf(0))
	c := b.client(Options{})
	for _, max := range []int16{13, 12, 9, 8, 3} {
		if got, err := request(t, c, max); err != nil || got != int32(min(max, 12)) {
			t.Errorf("up to version %d: %d, %v", max, got, err)
		}
	}
	if _, err := request(t, c, 2); !errors.Is(err, ErrVersion) {
		t.Errorf("up to version 2: %v", err)
	}
	if _, err := c.Request(t.Context(), kmsg.NewPtrFetchRequest(), 18); !errors.Is(err, ErrVersion) {
		t.Errorf("an API that is not served: %v", err)
	}
	if b.dialed != 1 {
		t.Errorf("%d connections, want one", b.dialed)
	}
}

// Tags in the header of an answer are read over.
func TestRequestWithTags(t *testing.T) {
	b := answering(t, metadataOf(2, 0, 1, 'x', 7, 2, 'y', 'z'))
	if got, err := request(t, b.client(Options{}), 12); err != nil || got != 12 {
		t.Errorf("%d, %v", got, err)
	}
}

// An answer that makes no sense costs the connection, and no memory that did not come; the next
// request makes another one.
func TestBadAnswers(t *testing.T) {
	good := metadataOf(0)
	f := func(name, want string, bad func(version int16, correlation int32) []byte) {
		t.Helper()
		asked := 0
		b := answering(t, func(version int16, correlation int32) []byte {
			if asked++; asked == 1 {
				return bad(version, correlation)
			}
			return good(version, correlation)
		})
		c := b.client(Options{AnswerMax: 1000, Timeout: 100 * time.Millisecond})
		if _, err := request(t, c, 12); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if got, err := request(t, c, 12); err != nil || got != 12 || b.dialed != 2 {
			t.Errorf("%s: then %d, %v by connection %d", name, got, err, b.dialed)
		}
	}
	f("too long", "an answer of 1001 bytes", func(int16, int32) []byte { return []byte{0, 0, 1001 >> 8, 1001 & 0xff, 0, 0, 0, 2} })
	f("negative", "an answer of -1 bytes", func(int16, int32) []byte { return []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2} })
	f("too short", "an answer of 3 bytes", func(int16, int32) []byte { return []byte{0, 0, 0, 3, 0, 0, 0, 2} })
	f("another's", "to request 1, not to 2", func(version int16, correlation int32) []byte { return good(version, correlation-1) })
	f("cut", "deadline", func(version int16, correlation int32) []byte { return good(version, correlation)[:20] })
	f("tags without end", "no sense", func(version int16, correlation int32) []byte {
		return metadataOf(1, 0, 0xff, 0x7f)(version, correlation)
	})
	f("more tags than bytes", "no sense", func(version int16, correlation int32) []byte { return metadataOf(0xff, 0x7f)(version, correlation) })
	f("no body", "answer to Metadata version 12", func(_ int16, correlation int32) []byte {
		return append([]byte{0, 0, 0, 5}, append(binary.BigEndian.AppendUint32(nil, uint32(correlation)), 0)...)
	})
}

// Whoever waits for an answer, or for its turn, ends with its own deadline; the others go on.
func TestRequestTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := true
		good := metadataOf(0)
		b := answering(t, func(version int16, correlation int32) []byte {
			if silent {
				return nil
			}
			return good(version, correlation)
		})
		c := b.client(Options{Timeout: 2 * time.Second})
		first := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := request(t, c, 12)
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Request(ctx, kmsg.NewPtrMetadataRequest(), 12); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("behind another: %v after %v", err, time.Since(began))
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("no answer: %v after %v", err, time.Since(began))
		}
		silent = false
		if got, err := request(t, c, 12); err != nil || got != 12 {
			t.Errorf("then: %d, %v", got, err)
		}
	})
}

// Close ends what waits for an answer, and nothing is asked after it.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := answering(t, func(int16, int32) []byte { return nil })
		c := b.client(Options{})
		asked := make(chan error, 1)
		go func() {
			_, err := request(t, c, 12)
			asked <- err
		}()
		synctest.Wait()
		c.Close()
		if err := <-asked; !errors.Is(err, context.Canceled) {
			t.Errorf("what was asked: %v", err)
		}
		if _, err := request(t, c, 12); !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) {
			t.Errorf("what is asked then: %v", err)
		}
		if b.dialed != 1 {
			t.Errorf("%d connections", b.dialed)
		}
		c.Close()
	})
}

func TestDialFails(t *testing.T) {
	refused := errors.New("refused")
	c := New(Options{Dial: func(context.Context) (net.Conn, error) { return nil, refused }})
	if _, err := request(t, c, 12); !errors.Is(err, refused) {
		t.Error(err)
	}
	c.Close()
}

func FuzzSkipTags(f *testing.F) {
	f.Add([]byte{1, 0, 1, 'x', 'r'})
	f.Fuzz(func(t *testing.T, b []byte) {
		if rest, err := skipTags(b); err == nil && len(rest) >= len(b) {
			t.Errorf("%x: nothing was read", b)
		}
	})
}

// A request that ends while its answer makes no sense ends as any other: nobody touches a connection that is gone.
func TestEndsWhileItFails(t *testing.T) {
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		b := &broker{t: t, answer: func(_, _ int16, _ int32, _ []byte) []byte {
			go cancel()
			return make([]byte, 8) // a frame of 0 bytes
		}}
		c := b.client(Options{})
		if _, err := c.Request(ctx, kmsg.NewPtrMetadataRequest(), 12); err == nil {
			t.Fatal("nonsense is an answer")
		}
		cancel()
	}
}
