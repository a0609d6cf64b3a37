package wire

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kbin"
	"pgregory.net/rapid"
)

// wantRead checks what a read of b gives and how much is left, or that the Decoder is bad.
func wantRead[T comparable](t *testing.T, b []byte, read func(*Decoder) T, want T, left int) { // left -1: bad
	t.Helper()
	d := NewDecoder(b)
	got := read(&d)
	if bad := left < 0; got != want || d.Bad() != bad || d.Len() != max(left, 0) {
		t.Errorf("%x: got %v, %d bytes left, bad %v, want %v, %d", b, got, d.Len(), d.Bad(), want, left)
	}
}

func TestDecodeIntegers(t *testing.T) {
	wantRead(t, nil, (*Decoder).Int8, 0, -1)
	wantRead(t, []byte{0xff}, (*Decoder).Int8, -1, 0)
	wantRead(t, []byte{7, 8}, (*Decoder).Int8, 7, 1)
	wantRead(t, []byte{1}, (*Decoder).Int16, 0, -1)
	wantRead(t, []byte{1, 2}, (*Decoder).Int16, 0x102, 0)
	wantRead(t, []byte{0xff, 0xff, 3}, (*Decoder).Int16, -1, 1)
	wantRead(t, []byte{1, 2, 3}, (*Decoder).Int32, 0, -1)
	wantRead(t, []byte{1, 2, 3, 4}, (*Decoder).Int32, 0x1020304, 0)
	wantRead(t, []byte{0x80, 0, 0, 0, 9}, (*Decoder).Int32, math.MinInt32, 1)
	wantRead(t, []byte{1, 2, 3, 4, 5, 6, 7}, (*Decoder).Int64, 0, -1)
	wantRead(t, []byte{1, 2, 3, 4, 5, 6, 7, 8}, (*Decoder).Int64, 0x102030405060708, 0)
	wantRead(t, []byte{0x80, 0, 0, 0, 0, 0, 0, 0, 9}, (*Decoder).Int64, math.MinInt64, 1)
}

func TestDecodeUvarints(t *testing.T) {
	f := func(b []byte, want uint32, left int) {
		t.Helper()
		wantRead(t, b, (*Decoder).Uvarint, want, left)
	}
	f(nil, 0, -1)
	f([]byte{0}, 0, 0)
	f([]byte{0x7f}, 127, 0)
	f([]byte{0x80}, 0, -1)
	f([]byte{0x80, 1}, 128, 0)
	f([]byte{0x80, 0}, 0, 0)
	f([]byte{5, 6}, 5, 1)
	f([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1}, math.MaxUint32, 1)
	f([]byte{0x80, 0x80, 0x80, 0x80, 0x10}, 0, -1)
	f([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 0, -1)
}

// Strings and byte arrays are null, empty, or have bytes that are there.
func TestDecodeStrings(t *testing.T) {
	const null = "null"
	text := func(b []byte) string {
		if b == nil {
			return null
		}
		return string(b)
	}
	read := func(as func(*Decoder, bool) []byte, flexible bool) func(*Decoder) string {
		return func(d *Decoder) string { return text(as(d, flexible)) }
	}
	str, compact, array := read((*Decoder).String, false), read((*Decoder).String, true), read((*Decoder).Bytes, false)
	wantRead(t, []byte{0xff, 0xff, 1}, str, null, 1)
	wantRead(t, []byte{0, 0}, str, "", 0)
	wantRead(t, []byte{0, 2, 'a', 'b', 'c'}, str, "ab", 1)
	wantRead(t, []byte{0, 2, 'a'}, str, null, -1)
	wantRead(t, []byte{0}, str, null, -1)
	wantRead(t, []byte{0xff, 0xff, 0xff, 0xff}, array, null, 0)
	wantRead(t, []byte{0, 0, 0, 0, 9}, array, "", 1)
	wantRead(t, []byte{0, 0, 0, 1, 'a', 'b'}, array, "a", 1)
	wantRead(t, []byte{0, 0, 0, 2, 'a'}, array, null, -1)
	for _, as := range []func(*Decoder) string{compact, read((*Decoder).Bytes, true)} {
		wantRead(t, []byte{0, 1}, as, null, 1)
		wantRead(t, []byte{1}, as, "", 0)
		wantRead(t, []byte{3, 'a', 'b', 'c'}, as, "ab", 1)
		wantRead(t, []byte{3, 'a', 'b'}, as, "ab", 0)
		wantRead(t, []byte{4, 'a', 'b'}, as, null, -1)
		wantRead(t, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, as, null, -1)
	}
}

// An array has as many elements as there can be.
func TestDecodeArrayLen(t *testing.T) {
	f := func(b []byte, flexible bool, elementMin, want, left int) {
		t.Helper()
		wantRead(t, b, func(d *Decoder) int { return d.ArrayLen(flexible, elementMin) }, want, left)
	}
	f([]byte{0xff, 0xff, 0xff, 0xff}, false, 1, 0, 0)
	f([]byte{0, 0, 0, 0}, false, 1, 0, 0)
	f([]byte{0, 0, 0, 1, 9}, false, 1, 1, 1)
	f([]byte{0, 0, 0, 1}, false, 1, 0, -1)
	f([]byte{0, 0, 0, 2, 1, 2, 3, 4}, false, 2, 2, 4)
	f([]byte{0, 0, 0, 2, 1, 2, 3}, false, 2, 0, -1)
	f([]byte{0}, true, 1, 0, 0)
	f([]byte{1}, true, 1, 0, 0)
	f([]byte{2, 9}, true, 1, 1, 1)
	f([]byte{2}, true, 1, 0, -1)
	f([]byte{3, 1, 2, 3, 4}, true, 2, 2, 4)
	f([]byte{3, 1, 2, 3}, true, 2, 0, -1)
	f([]byte{0x7f, 0xff, 0xff, 0xff}, false, 1<<20, 0, -1)
}

func TestDecodeTags(t *testing.T) {
	skip := func(d *Decoder) int { d.SkipTags(); return 0 }
	wantRead(t, []byte{0, 9}, skip, 0, 1)
	wantRead(t, []byte{1, 5, 2, 'x', 'y', 9}, skip, 0, 1)
	wantRead(t, []byte{1, 5, 2, 'x', 'y'}, skip, 0, 0)
	wantRead(t, []byte{2, 5, 0, 6, 1, 'x'}, skip, 0, 0)
	wantRead(t, []byte{1, 5, 3, 'x', 'y'}, skip, 0, -1)
	wantRead(t, []byte{2, 5, 0}, skip, 0, -1)
	d := NewDecoder([]byte{5, 2, 'x', 'y'})
	if tag, value := d.Tag(); tag != 5 || string(value) != "xy" || d.Bad() {
		t.Errorf("got %d %q", tag, value)
	}
}

func TestTake(t *testing.T) {
	take := func(n int) func(*Decoder) string {
		return func(d *Decoder) string { return string(d.Take(n)) }
	}
	wantRead(t, []byte("abc"), take(0), "", 3)
	wantRead(t, []byte("abc"), take(3), "abc", 0)
	wantRead(t, []byte("abc"), take(4), "", -1)
	wantRead(t, []byte("abc"), take(-1), "", -1)
	d := NewDecoder([]byte("abc"))
	head := d.Take(1)
	if _ = append(head, 'x'); string(d.Take(2)) != "bc" {
		t.Error("what is appended to a part goes over the rest")
	}
}

// What is encoded is read again, and is what other people's encoder writes.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Repeat("s", rapid.IntRange(0, 300).Draw(t, "size"))
		n := rapid.IntRange(0, 300).Draw(t, "count")
		flexible := rapid.Bool().Draw(t, "flexible")
		theirs, theirsNull, theirLen, theirNullArray := kbin.AppendString, kbin.AppendNullableString, kbin.AppendArrayLen, kbin.AppendNullableArrayLen
		if flexible {
			theirs, theirsNull, theirLen, theirNullArray = kbin.AppendCompactString, kbin.AppendCompactNullableString, kbin.AppendCompactArrayLen, kbin.AppendCompactNullableArrayLen
		}
		f := func(what string, got, want []byte) {
			t.Helper()
			if !bytes.Equal(got, want) {
				t.Fatalf("%s: got %x, want %x", what, got, want)
			}
		}
		f("string", AppendString(nil, s, flexible), theirs(nil, s))
		f("bytes as string", AppendString(nil, []byte(s), flexible), theirs(nil, s))
		f("nullable", AppendNullableString(nil, &s, flexible), theirsNull(nil, &s))
		f("null", AppendNullableString(nil, nil, flexible), theirsNull(nil, nil))
		f("length", AppendArrayLen(nil, n, flexible), theirLen(nil, n))
		f("null array", AppendNullArray(nil, flexible), theirNullArray(nil, 0, true))
		d := NewDecoder(AppendString(nil, s, flexible))
		if got := d.String(flexible); string(got) != s || d.Len() > 0 || d.Bad() {
			t.Fatalf("got %q of %q", got, s)
		}
	})
}
