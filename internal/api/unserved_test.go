package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// logOf returns what a server logs from now on at WARN and above.
func logOf(s *Server) *bytes.Buffer {
	var b bytes.Buffer
	s.Logger = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return &b
}

// What is not served closes the connection, and the log says so once for each client id.
func TestUnservedIsLoggedOnce(t *testing.T) {
	s := cluster(t)
	log := logOf(s)
	f := func(clientID string, key, version int16, want error, line string) {
		t.Helper()
		log.Reset()
		err := s.Handle(context.Background(), &Request{Key: key, Version: version, ClientID: clientID}, &wire.Response{})
		if !errors.Is(err, want) {
			t.Errorf("key %d version %d: got %v, want %v", key, version, err, want)
		}
		if got := log.String(); line == "" && got != "" || !strings.Contains(got, line) || strings.Count(got, "\n") > 1 {
			t.Errorf("key %d version %d of %q: got the line %q, want %q", key, version, clientID, got, line)
		}
	}
	f("a", int16(kmsg.EndTxn), 0, errUnknownKey, `api=EndTxn version=0 client=a`)
	f("a", int16(kmsg.EndTxn), 0, errUnknownKey, "")
	f("a", int16(kmsg.EndTxn), 3, errUnknownKey, `api=EndTxn version=3 client=a`)
	f("b", int16(kmsg.EndTxn), 0, errUnknownKey, `api=EndTxn version=0 client=b`)
	f("a", 999, 0, errUnknownKey, "api=999")
	f("a", -1, 0, errUnknownKey, "api=-1")
	f("a", kmsg.MaxKey+1, 0, errUnknownKey, fmt.Sprintf("api=%d", kmsg.MaxKey+1)) // the first behind the table
	f("a", math.MaxInt16, 0, errUnknownKey, "api=32767")
	f("a", int16(kmsg.Produce), 99, errUnsupportedVersion, "api=Produce version=99")
	f("a", int16(kmsg.Metadata), -1, errUnsupportedVersion, "api=Metadata version=-1")
	f(strings.Repeat("x", 5000), 999, 0, errUnknownKey, "client="+strings.Repeat("x", unservedClientIDMax)+" ")
	for i := range 2 * unservedMax { // whatever client ids somebody makes up
		s.noteUnserved(&Request{Key: 999, ClientID: fmt.Sprint(i)})
	}
	if n := len(s.unserved.seen); n != unservedMax {
		t.Errorf("%d kinds of requests are remembered, want %d", n, unservedMax)
	}
	f("one more", 999, 0, errUnknownKey, "")
}

// Clients that ask for one new topic at the same moment all get it, and no line in the log.
func TestAutoCreateRaceIsSilent(t *testing.T) {
	s := cluster(t)
	log := logOf(s)
	req := kmsg.NewPtrMetadataRequest()
	name := "raced"
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	req.SetVersion(1)
	body := req.AppendTo(nil)
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			r := &Request{Key: req.Key(), Version: 1, Listener: testListener, Body: body}
			if err := s.Handle(context.Background(), r, &wire.Response{}); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	s.autoCreate(context.Background(), []string{name}) // whoever came late for certain
	if s.Metadata().Topic(name) == nil || log.Len() > 0 {
		t.Errorf("topic %v, log:\n%s", s.Metadata().Topic(name), log)
	}
	s.autoCreate(context.Background(), []string{"in valid"})
	if !strings.Contains(log.String(), "could not be created automatically") {
		t.Errorf("a refused name: log %q", log)
	}
}

// Answers of Kafka 4.4.0 without a receiver of metrics, which lists neither of the two.
func TestTelemetryNobodyWants(t *testing.T) {
	s := cluster(t)
	get := kmsg.NewPtrGetTelemetrySubscriptionsRequest()
	first := ask[kmsg.GetTelemetrySubscriptionsResponse](t, s, 0, get)
	id := first.ClientInstanceID
	if first.ErrorCode != 0 || uuid.UUID(id).IsZero() || len(first.RequestedMetrics) != 0 || first.PushIntervalMillis != 300_000 {
		t.Errorf("got %+v", first)
	}
	get.ClientInstanceID = id
	if again := ask[kmsg.GetTelemetrySubscriptionsResponse](t, s, 0, get); again.ClientInstanceID != id || again.SubscriptionID != first.SubscriptionID {
		t.Errorf("got %+v after %+v", again, first)
	}
	push := func(id [16]byte, subscription int32, want int16) {
		t.Helper()
		req := kmsg.NewPtrPushTelemetryRequest()
		req.ClientInstanceID, req.SubscriptionID = id, subscription
		if got := ask[kmsg.PushTelemetryResponse](t, s, 0, req); got.ErrorCode != want {
			t.Errorf("got %v, want %v", kerr.ErrorForCode(got.ErrorCode), kerr.ErrorForCode(want))
		}
	}
	push(id, first.SubscriptionID, 0)
	push(id, first.SubscriptionID+1, kerr.UnknownSubscriptionID.Code)
	push([16]byte{9}, first.SubscriptionID, kerr.UnknownSubscriptionID.Code)
	push([16]byte{}, 7, kerr.InvalidRequest.Code)
	for _, k := range ask[kmsg.ApiVersionsResponse](t, s, 0, kmsg.NewPtrApiVersionsRequest()).ApiKeys {
		if kmsg.Key(k.ApiKey) == kmsg.GetTelemetrySubscriptions || kmsg.Key(k.ApiKey) == kmsg.PushTelemetry {
			t.Errorf("API %d is listed", k.ApiKey)
		}
	}
}
