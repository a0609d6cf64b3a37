package metadata

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A golden is a record that Kafka wrote.
type golden struct {
	level int16
	value []byte
	kind  string
	data  map[string]any // as kafka-dump-log prints it
}

func goldens(t testing.TB) (list []golden) {
	t.Helper()
	f, err := os.Open("testdata/records.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		level, rest, _ := strings.Cut(s.Text(), " ")
		value, text, _ := strings.Cut(rest, " ")
		var dump struct {
			Type string
			Data map[string]any
		}
		n, err1 := strconv.Atoi(level)
		b, err2 := hex.DecodeString(value)
		if err := errors.Join(err1, err2, json.Unmarshal([]byte(text), &dump)); err != nil {
			t.Fatal(err)
		}
		list = append(list, golden{int16(n), b, dump.Type, dump.Data})
	}
	return list
}

func TestRecordsOfKafka(t *testing.T) {
	for _, g := range goldens(t) {
		r, err := Decode(g.value)
		if err != nil {
			t.Errorf("%s %v: %v", g.kind, g.data, err)
			continue
		}
		if got := kafkaName(r); got != g.kind {
			t.Errorf("decoded a %s, want %s", got, g.kind)
		}
		compare(t, g.kind, reflect.ValueOf(r).Elem(), g.data)
		if g.kind == "BROKER_REGISTRATION_CHANGE_RECORD" && g.level == 33 && len(g.data) == 2 {
			continue // its cordoned directories are null: Kafka keeps version 3 all the same
		}
		if got := Append(nil, r, g.level); string(got) != string(g.value) {
			t.Errorf("%s encodes as %x, Kafka as %x", g.kind, got, g.value)
		}
	}
}

// kafkaName spells a record's type as Kafka's dump does.
func kafkaName(r Record) string {
	var b strings.Builder
	for i, c := range strings.TrimPrefix(fmt.Sprintf("%T", r), "*metadata.") {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToUpper(b.String())
}

// compare checks the fields of a struct that Kafka's JSON has.
func compare(t *testing.T, where string, v reflect.Value, want map[string]any) {
	t.Helper()
	for name, w := range want {
		f := v.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
		if !f.IsValid() {
			t.Errorf("%s has no field %s", where, name)
			continue
		}
		compareValue(t, where+"."+name, f, w)
	}
}

func compareValue(t *testing.T, where string, v reflect.Value, want any) {
	t.Helper()
	var got any
	switch x := v.Interface().(type) {
	case uuid.UUID:
		got = x.String()
	case []byte:
		got = base64.StdEncoding.EncodeToString(x)
	case *string:
		if x != nil {
			got = *x
		}
	case string, bool:
		got = x
	case float64:
		got = x
	default:
		switch {
		case v.CanInt():
			got = float64(v.Int())
		case v.CanUint():
			got = float64(v.Uint())
		case v.Kind() == reflect.Struct:
			compare(t, where, v, want.(map[string]any))
			return
		case v.Kind() == reflect.Slice:
			list, _ := want.([]any)
			if v.Len() != len(list) || v.IsNil() != (want == nil) {
				t.Errorf("%s = %v, want %v", where, v, want)
				return
			}
			for i, w := range list {
				compareValue(t, fmt.Sprintf("%s[%d]", where, i), v.Index(i), w)
			}
			return
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s = %v, want %v", where, got, want)
	}
}

func TestRecordDefaults(t *testing.T) {
	if r := NewPartitionChangeRecord(); r.Leader != -2 || r.LeaderRecoveryState != -1 || r.ISR != nil {
		t.Errorf("PartitionChangeRecord defaults are %+v", r)
	}
	if r := NewRegisterBrokerRecord(); !r.Fenced || r.CordonedLogDirs != nil {
		t.Errorf("RegisterBrokerRecord defaults are %+v", r)
	}
}

func TestRecordVersions(t *testing.T) {
	f := func(r Record, level, want int16) {
		t.Helper()
		if got := int16(Append(nil, r, level)[2]); got != want {
			t.Errorf("%T at level %d has version %d, want %d", r, level, got, want)
		}
	}
	f(NewPartitionRecord(), 7, 0)
	f(NewPartitionRecord(), 21, 1)
	f(NewPartitionRecord(), 33, 2)
	f(NewPartitionRecord(), 0, 2) // not known yet: the current level
	f(NewPartitionChangeRecord(), 16, 0)
	f(NewPartitionChangeRecord(), 17, 1)
	f(NewRegisterBrokerRecord(), 7, 1)
	f(NewRegisterBrokerRecord(), 21, 3)
	f(NewRegisterBrokerRecord(), 29, 3)
	f(NewRegisterBrokerRecord(), 30, 4)
	f(NewRegisterBrokerRecord(), 33, 4)
	f(&BrokerRegistrationChangeRecord{Fenced: -1}, 33, 0)
	f(&BrokerRegistrationChangeRecord{InControlledShutdown: 1}, 33, 1)
	f(&BrokerRegistrationChangeRecord{LogDirs: []uuid.UUID{{1}}}, 33, 2)
	f(&BrokerRegistrationChangeRecord{CordonedLogDirs: []uuid.UUID{}}, 33, 3)
}

func TestTellsCordoned(t *testing.T) {
	for level, want := range map[int16]bool{7: false, 29: false, 30: true, 33: true, 0: true} {
		if got := TellsCordoned(level); got != want {
			t.Errorf("level %d: %v, want %v", level, got, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	f := func(name string, b []byte) {
		t.Helper()
		if r, err := Decode(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %+v, %v, want ErrCorrupt", name, r, err)
		}
	}
	topic := Append(nil, &TopicRecord{Name: "orders", TopicID: uuid.UUID{1}}, LevelCurrent)
	f("nothing", nil)
	f("frame version", append([]byte{2}, topic[1:]...))
	f("unknown key", []byte{1, 6, 0, 0})
	f("key above int16", []byte{1, 0xff, 0xff, 0x7f, 0, 0})
	f("unknown version", append([]byte{1, 2, 1}, topic[3:]...))
	f("cut off", topic[:len(topic)-2])
	f("bytes left", append(topic[:len(topic):len(topic)], 0))
	f("null name", append([]byte{1, 2, 0, 0}, make([]byte, 17)...))
	f("long varint", []byte{1, 2, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f("array longer than the bytes", append(append([]byte{1, 3, 0}, make([]byte, 20)...), 0xff, 0xff, 0xff, 0x7f))
	f("tag longer than the bytes", append(topic[:len(topic)-1:len(topic)-1], 1, 5, 9))
}

func TestDecodeSkipsUnknownTags(t *testing.T) {
	b := Append(nil, &TopicRecord{Name: "orders", TopicID: uuid.UUID{1}}, LevelCurrent)
	b = append(b[:len(b)-1], 1, 99, 3, 'x', 'y', 'z')
	r, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.(*TopicRecord).Name; got != "orders" {
		t.Errorf("name = %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g.value)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		// What was decoded survives another round in the newest version.
		again, err := Decode(Append(nil, r, LevelCurrent))
		if err != nil {
			t.Fatalf("%+v encodes to something unreadable: %v", r, err)
		}
		if a, b := Append(nil, r, LevelCurrent), Append(nil, again, LevelCurrent); string(a) != string(b) {
			t.Fatalf("%x becomes %x", a, b)
		}
	})
}

func FuzzDecodeControl(f *testing.F) {
	f.Add(AppendControl(nil, &LeaderChangeMessage{LeaderID: 1, Voters: []Voter{{VoterID: 1}}}, 0))
	f.Add(AppendControl(nil, &SnapshotHeaderRecord{LastContainedLogTimestamp: 7}, 0))
	f.Add(AppendControl(nil, &VotersRecord{Voters: []VotersRecordVoter{{VoterID: 1, Endpoints: []Endpoint{{Name: "C", Port: 9093}}}}}, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, r := range []ControlRecord{
			NewLeaderChangeMessage(), NewSnapshotHeaderRecord(), NewSnapshotFooterRecord(), NewKRaftVersionRecord(), NewVotersRecord(),
		} {
			if DecodeControl(b, r) == nil {
				AppendControl(nil, r, r.MaxVersion())
			}
		}
	})
}
