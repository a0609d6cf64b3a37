package record

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// T is the first timestamp in the golden vectors.
const T = 1700000000000

// golden holds batches that Kafka's own classes made, and what is in them. Those with a
// build function have to come out of ours byte for byte.
var golden = []struct {
	name  string
	hex   string
	want  []Record
	build func() []byte
}{{
	name: "v0",
	hex:  "00000000000000050000001119ecdc7200000000000161000000026262",
	want: []Record{{Offset: 5, Timestamp: -1, TimestampType: NoTimestamp, Sequence: -1, Key: []byte("a"), Value: []byte("bb")}},
	build: func() []byte {
		return buildSet(SetOptions{Magic: 0}, Record{Offset: 5, Key: []byte("a"), Value: []byte("bb")})
	},
}, {
	name:  "v0 nulls",
	hex:   "00000000000000000000000ea7ec68030000ffffffffffffffff",
	want:  []Record{{Timestamp: -1, TimestampType: NoTimestamp, Sequence: -1}},
	build: func() []byte { return buildSet(SetOptions{Magic: 0}, Record{}) },
}, {
	name: "v1",
	hex:  "00000000000000070000001946cf9e2101000000018bcfe568000000000161000000026262",
	want: []Record{{Offset: 7, Timestamp: T, Sequence: -1, Key: []byte("a"), Value: []byte("bb")}},
	build: func() []byte {
		return buildSet(SetOptions{Magic: 1}, Record{Offset: 7, Timestamp: T, Key: []byte("a"), Value: []byte("bb")})
	},
}, {
	name: "v0 lz4",
	hex: "000000000000000b00000051966fc4bf0003ffffffff0000004304224d1860401a3400000012000100910a0000001257e7496e0f00" +
		"80026b3100000002760600000200100b1e0040ff0602490d00a000026b3200000002763200000000",
	want: []Record{
		{Offset: 10, Timestamp: -1, TimestampType: NoTimestamp, Sequence: -1, Key: []byte("k1"), Value: []byte("v1")},
		{Offset: 11, Timestamp: -1, TimestampType: NoTimestamp, Sequence: -1, Key: []byte("k2"), Value: []byte("v2")},
	},
}, {
	name: "v1 lz4",
	hex: "000000000000000b000000638019fd5a01030000018bcfe56805ffffffff0000004d04224d186040823e00000016000100e01aa5da" +
		"6a6201000000018bcfe568180080026b3100000002760600000200001d00501a10149256090001260010052000806b3200000002763200000000",
	want: pair(Record{Sequence: -1}),
}, {
	name: "v1 snappy",
	hex: "000000000000000b00000067dc5332a701020000018bcfe56805ffffffff0000005182534e415050590000000001000000010000003d" +
		"4c00001901341aa5da6a6201000000018bcfe56801181c026b31000000027601060101011d101a10149256010905263005000000026b32000000027632",
	want: pair(Record{Sequence: -1}),
}, {
	name: "v2 lz4",
	hex: "000000000000000a00000056ffffffff0228eb06460003000000010000018bcfe568000000018bcfe56805ffffffffffffffffffffff" +
		"ffffff0000000204224d186040821600008014000000046b310476310014000a02046b320476320000000000",
	want: pair(Record{Sequence: -1}),
	build: func() []byte {
		return build(BuilderOptions{Codec: LZ4, BaseOffset: 10}, pair(Record{})...)
	},
}, {
	name: "v2 snappy",
	hex: "000000000000000a0000005dffffffff02a39e967a0002000000010000018bcfe568000000018bcfe56805ffffffffffffffffffffff" +
		"ffffff0000000282534e4150505900000000010000000100000018165414000000046b310476310014000a02046b3204763200",
	want: pair(Record{Sequence: -1}),
	build: func() []byte {
		return build(BuilderOptions{Codec: Snappy, BaseOffset: 10}, pair(Record{})...)
	},
}, {
	name: "v2 headers and nulls",
	hex: "00000000000000640000004800000009027f4f55120000000000010000018bcfe568000000018bcfe56800ffffffffffffffffffffff" +
		"ffffff000000021e000000026b02760402680278026e010c000502010100",
	want: []Record{
		{Offset: 100, Timestamp: T, Sequence: -1, Key: []byte("k"), Value: []byte("v"),
			Headers: []Header{{Key: "h", Value: []byte("x")}, {Key: "n"}}},
		{Offset: 101, Timestamp: T - 3, Sequence: -1},
	},
	build: func() []byte {
		return build(BuilderOptions{BaseOffset: 100, LeaderEpoch: new(int32(9))},
			Record{Offset: 100, Timestamp: T, Key: []byte("k"), Value: []byte("v"),
				Headers: []Header{{Key: "h", Value: []byte("x")}, {Key: "n"}}},
			Record{Offset: 101, Timestamp: T - 3})
	},
}, {
	name: "v2 transactional",
	hex: "00000000000000640000003a0000000902816a088d0010000000000000018bcfe568000000018bcfe568000000000000000fa0000300" +
		"0000110000000110000000026b027600",
	want: []Record{{Offset: 100, Timestamp: T, Sequence: 17, Key: []byte("k"), Value: []byte("v")}},
	build: func() []byte {
		return build(BuilderOptions{BaseOffset: 100, LeaderEpoch: new(int32(9)), Transactional: true, Producer: &Producer{4000, 3, 17}},
			Record{Offset: 100, Timestamp: T, Key: []byte("k"), Value: []byte("v")})
	},
}, {
	name: "commit marker",
	hex: "000000000000006500000042000000090293640b250030000000000000018bcfe568000000018bcfe568000000000000000fa00003ff" +
		"ffffff000000012000000008000000010c00000000000200",
	want: []Record{{Offset: 101, Timestamp: T, Sequence: -1, Key: []byte{0, 0, 0, 1}, Value: []byte{0, 0, 0, 0, 0, 2}}},
	build: func() []byte {
		return EndTxnMarker(EndTxn{Type: ControlCommit, ProducerID: 4000, ProducerEpoch: 3, CoordinatorEpoch: 2,
			Timestamp: T, BaseOffset: 101, LeaderEpoch: new(int32(9))})
	},
}, {
	name: "emptied",
	hex: "0000000000000064000000310000000902f9e5d4f0001000000004ffffffffffffffff0000018bcfe568000000000000000fa0000300" +
		"00001100000000",
	build: func() []byte {
		b := NewBuilder(BuilderOptions{Codec: Zstd, BaseOffset: 100, LeaderEpoch: new(int32(9)), Transactional: true, Producer: &Producer{4000, 3, 17}})
		for i := range int64(5) {
			if err := b.Append(Record{Offset: 100 + i, Timestamp: T - 4 + i}); err != nil {
				panic(err)
			}
		}
		return EmptyBatch(b.Build())
	},
}, {
	name: "compacted with tombstone",
	hex: "0000000000000064000000480000000902eada8af80040000000020000018bd50d4aa00000018bcfe56802ffffffffffffffffffffff" +
		"ffffff000000021400bd8abf5202026201001600bb8abf52040263023200",
	want: []Record{
		{Offset: 101, Timestamp: T + 1, Sequence: -1, Key: []byte("b")},
		{Offset: 102, Timestamp: T + 2, Sequence: -1, Key: []byte("c"), Value: []byte("2")},
	},
	build: func() []byte {
		return build(BuilderOptions{BaseOffset: 100, LeaderEpoch: new(int32(9)), DeleteHorizon: T + 100_000 + 86_400_000},
			Record{Offset: 101, Timestamp: T + 1, Key: []byte("b")},
			Record{Offset: 102, Timestamp: T + 2, Key: []byte("c"), Value: []byte("2")})
	},
}, {
	name: "marker with horizon",
	hex: "00000000000000650000004500000009021b23a79e0070000000000000018bd50d4aa00000018bcfe568000000000000000fa00003ff" +
		"ffffff000000012600bf8abf520008000000010c00000000000200",
	want: []Record{{Offset: 101, Timestamp: T, Sequence: -1, Key: []byte{0, 0, 0, 1}, Value: []byte{0, 0, 0, 0, 0, 2}}},
	build: func() []byte {
		return ControlBatch(BuilderOptions{BaseOffset: 101, LeaderEpoch: new(int32(9)), Transactional: true,
			Producer: &Producer{4000, 3, -1}, DeleteHorizon: T + 100_000 + 86_400_000}, T, ControlCommit, []byte{0, 0, 0, 0, 0, 2})
	},
}}

// pair returns k1/v1 at 10 and k2/v2 at 11, with what else r has.
func pair(r Record) []Record {
	first, second := r, r
	first.Offset, first.Timestamp, first.Key, first.Value = 10, T, []byte("k1"), []byte("v1")
	second.Offset, second.Timestamp, second.Key, second.Value = 11, T+5, []byte("k2"), []byte("v2")
	return []Record{first, second}
}

func build(o BuilderOptions, records ...Record) []byte {
	b := NewBuilder(o)
	for _, r := range records {
		if err := b.Append(r); err != nil {
			panic(err)
		}
	}
	return b.Build()
}

func buildSet(o SetOptions, records ...Record) []byte {
	b, err := NewSetBuilder(o)
	if err != nil {
		panic(err)
	}
	for _, r := range records {
		if err := b.Append(r); err != nil {
			panic(err)
		}
	}
	return b.Build()
}

// mustRecords returns the records of one batch, cloned.
func mustRecords(t testing.TB, b Batch) []Record {
	t.Helper()
	var got []Record
	for r, err := range b.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Headers) == 0 {
			r.Headers = nil
		}
		got = append(got, r.Clone())
	}
	return got
}

func goldenBytes(t testing.TB, i int) []byte {
	t.Helper()
	b, err := hex.DecodeString(golden[i].hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenVectors(t *testing.T) {
	for i, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			raw := goldenBytes(t, i)
			b, err := First(raw)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Verify(); err != nil {
				t.Fatal(err)
			}
			if b.Size() != len(raw) {
				t.Errorf("got size %d, want %d", b.Size(), len(raw))
			}
			if diff := cmp.Diff(g.want, mustRecords(t, b)); diff != "" {
				t.Error(diff)
			}
			if g.build == nil {
				return
			}
			if got := g.build(); !bytes.Equal(got, raw) {
				t.Errorf("built\n%x, want\n%x", got, raw)
			}
		})
	}
}

// The golden LZ4 wrappers were packed by another LZ4 implementation than ours, so only the
// frame around the blocks is compared.
func TestLZ4HeaderChecksum(t *testing.T) {
	f := func(magic int8, want string) {
		t.Helper()
		set := buildSet(SetOptions{Magic: magic, Codec: LZ4}, pair(Record{})...)
		if !bytes.Contains(set, []byte("\x04\x22\x4d\x18\x60\x40"+want)) {
			t.Errorf("v%d: got %x, want checksum %x", magic, set, want)
		}
		wrapper := Batch(set)
		if got := len(mustRecords(t, wrapper)); got != 2 {
			t.Errorf("v%d: got %d records, want 2", magic, got)
		}
	}
	f(0, "\x1a")
	f(1, "\x82")
}

func TestGoldenFields(t *testing.T) {
	f := func(name string, want map[string]int64) {
		t.Helper()
		for i, g := range golden {
			if g.name != name {
				continue
			}
			b := Batch(goldenBytes(t, i))
			first, err := b.FirstOffset()
			if err != nil {
				t.Fatal(err)
			}
			horizon, ok := b.DeleteHorizon()
			if !ok {
				horizon = -1
			}
			got := map[string]int64{
				"magic": int64(b.Magic()), "base": b.BaseOffset(), "last": b.LastOffset(), "next": b.NextOffset(), "first": first,
				"epoch": int64(b.LeaderEpoch()), "attributes": int64(b.Attributes()), "codec": int64(b.Codec()),
				"baseTime": b.BaseTimestamp(), "maxTime": b.MaxTimestamp(), "horizon": horizon,
				"pid": b.ProducerID(), "pepoch": int64(b.ProducerEpoch()), "seq": int64(b.BaseSequence()), "lastSeq": int64(b.LastSequence()),
				"count": int64(b.Count()), "type": int64(b.TimestampType()),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(name, diff)
			}
		}
	}
	const horizon = T + 100_000 + 86_400_000
	f("v0", map[string]int64{"magic": 0, "base": 5, "last": 5, "next": 6, "first": 5, "epoch": -1, "attributes": 0, "codec": 0,
		"baseTime": -1, "maxTime": -1, "horizon": -1, "pid": -1, "pepoch": -1, "seq": -1, "lastSeq": -1, "count": 1, "type": -1})
	f("v1 lz4", map[string]int64{"magic": 1, "base": 11, "last": 11, "next": 12, "first": 10, "epoch": -1, "attributes": 3, "codec": 3,
		"baseTime": T + 5, "maxTime": T + 5, "horizon": -1, "pid": -1, "pepoch": -1, "seq": -1, "lastSeq": -1, "count": -1, "type": 0})
	f("emptied", map[string]int64{"magic": 2, "base": 100, "last": 104, "next": 105, "first": 100, "epoch": 9, "attributes": 0x10, "codec": 0,
		"baseTime": -1, "maxTime": T, "horizon": -1, "pid": 4000, "pepoch": 3, "seq": 17, "lastSeq": 21, "count": 0, "type": 0})
	f("marker with horizon", map[string]int64{"magic": 2, "base": 101, "last": 101, "next": 102, "first": 101, "epoch": 9, "attributes": 0x70, "codec": 0,
		"baseTime": horizon, "maxTime": T, "horizon": horizon, "pid": 4000, "pepoch": 3, "seq": -1, "lastSeq": -1, "count": 1, "type": 0})
}
