package client

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestParseStart(t *testing.T) {
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	// A partition that holds [100, 200); the broker answers 150 for any time.
	f := func(text string, want int64) {
		t.Helper()
		s, err := ParseStart(text, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.in(100, 200, 150); got != want {
			t.Errorf("start %q is offset %d, want %d", text, got, want)
		}
	}
	f("beginning", 100)
	f("end", 200)
	f("0", 100)
	f("142", 142)
	f("999", 200)
	f("-10", 190)
	f("-1000", 100)
	f("90m", 150)
	f("2026-11-30T07:00:00Z", 150)
	f("@1700000000000", 150)

	s, err := ParseStart("90m", now)
	if err != nil || !s.time.Equal(now.Add(-90*time.Minute)) {
		t.Errorf("90m is %v, %v", s.time, err)
	}
	if s.in(100, 200, -1) != 200 {
		t.Error("a time after the last record must start at the end")
	}
	for _, bad := range []string{"", "yesterday", "1x", "@", "@-1", "2026-13-01"} {
		if _, err := ParseStart(bad, now); err == nil {
			t.Errorf("ParseStart(%q) succeeded", bad)
		}
	}
}

func TestFormat(t *testing.T) {
	r := &kgo.Record{Topic: "t", Partition: 3, Offset: 42, Key: []byte("k"), Timestamp: time.UnixMilli(1700000000000).UTC(), LeaderEpoch: 7,
		Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}}}
	f := func(pattern, want string) {
		t.Helper()
		format, err := ParseFormat(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := format.write(&b, r); err != nil || b.String() != want {
			t.Errorf("format %q wrote %q, %v, want %q", pattern, b.String(), err, want)
		}
	}
	f(`%t-%p@%o\n`, "t-3@42\n")
	f(`%k=%v (%K/%S)\t%%\\`, "k= (1/-1)\t%\\")
	f(`%h %e`, "a=1,b=NULL 7")
	f(`%T %d`, "1700000000000 2023-11-14T22:13:20Z")
	for _, bad := range []string{"%", `\`, "%x", `\q`} {
		if _, err := ParseFormat(bad); err == nil {
			t.Errorf("ParseFormat(%q) succeeded", bad)
		}
	}
}

func TestJSONKeepsEveryByte(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, r := range []*kgo.Record{
		{Key: all, Value: nil, Timestamp: time.UnixMilli(5)},
		{Key: nil, Value: []byte{}, Timestamp: time.UnixMilli(0), Headers: []kgo.RecordHeader{{Key: "h", Value: all}, {Key: "h"}, {Key: "", Value: []byte{}}}},
	} {
		line, err := json.Marshal(toJSON(r))
		if err != nil {
			t.Fatal(err)
		}
		back, err := fromJSON(line)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{r.Key, r.Value, r.Headers, r.Timestamp}, []any{back.Key, back.Value, back.Headers, back.Timestamp}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
	for _, bad := range []string{"", "[]", `{"key":"*"}`, `{"headers":[["only name"]]}`, `{"headers":[{}]}`} {
		if _, err := fromJSON([]byte(bad)); err == nil {
			t.Errorf("fromJSON(%s) succeeded", bad)
		}
	}
}

func TestParseLines(t *testing.T) {
	o := ProduceOptions{Topic: "t", Partition: -1, KeySeparator: ":", NullMarker: "NULL", Headers: []string{"a=b=c"}}
	parse, err := o.parser()
	if err != nil {
		t.Fatal(err)
	}
	f := func(line string, key, value []byte) {
		t.Helper()
		r, err := parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Key, key) || (r.Key == nil) != (key == nil) || !bytes.Equal(r.Value, value) || (r.Value == nil) != (value == nil) {
			t.Errorf("line %q: key %q value %q, want %q %q", line, r.Key, r.Value, key, value)
		}
		if len(r.Headers) != 1 || r.Headers[0].Key != "a" || string(r.Headers[0].Value) != "b=c" {
			t.Errorf("headers %v", r.Headers)
		}
	}
	f("k:v:w", []byte("k"), []byte("v:w"))
	f(":", []byte{}, []byte{})
	f("NULL:NULL", nil, nil)
	if _, err := parse([]byte("no separator")); err == nil {
		t.Error("a line without separator was accepted")
	}
	if _, err := (ProduceOptions{Headers: []string{"x"}}).parser(); err == nil {
		t.Error("a header without value was accepted")
	}
}
