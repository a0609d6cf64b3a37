package record

import (
	"encoding/hex"
	"testing"
)

// wrapper is a v1 message with LZ4, made by Kafka: offsets 10 and 11.
const wrapper = "000000000000000b000000638019fd5a01030000018bcfe56805ffffffff0000004d04224d186040823e00000016000100e01aa5da6a62" +
	"01000000018bcfe568180080026b3100000002760600000200001d00501a10149256090001260010052000806b3200000002763200000000"

// Messages are those inside of a wrapper as they are stored, with relative offsets and their
// own checksums; an uncompressed message is its own.
func TestMessages(t *testing.T) {
	f := func(text string, want ...int64) {
		t.Helper()
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for m, err := range Batch(b).Messages() {
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Verify(); err != nil {
				t.Error(err)
			}
			got = append(got, m.BaseOffset())
		}
		if len(got) != len(want) {
			t.Fatalf("got offsets %v, want %v", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("got offsets %v, want %v", got, want)
			}
		}
	}
	f("00000000000000050000001119ecdc7200000000000161000000026262", 5) // v0
	f(wrapper, 0, 1)                                                   // v1, LZ4
	f("000000000000000a00000056ffffffff0228eb06460003000000010000018bcfe568000000018bcfe56805ffffffffffffffffffffffffffff0000000204" +
		"224d186040821600008014000000046b310476310014000a02046b320476320000000000") // v2 has none
}

func TestMessagesOfADamagedWrapper(t *testing.T) {
	b, err := hex.DecodeString(wrapper)
	if err != nil {
		t.Fatal(err)
	}
	b[40] ^= 0xff // in the LZ4 frame
	count := 0
	for _, err = range Batch(b).Messages() {
		count++
	}
	if err == nil || count != 1 {
		t.Errorf("%d messages, last error %v", count, err)
	}
}
