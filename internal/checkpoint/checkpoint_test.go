package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
	"github.com/gregor-kafka/gregor/vfs"
)

// newFS has one directory, "d", which is durable.
func newFS(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	if err := vfs.MkdirAll(m, "d", 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

func write(t testing.TB, m vfs.FS, path, text string) {
	t.Helper()
	if err := vfs.WriteFileAtomic(m, path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, m vfs.FS, path string) string {
	t.Helper()
	data, err := vfs.ReadFile(m, path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOffsets(t *testing.T) {
	m := newFS(t)
	f := func(text string, want map[topic.Partition]int64) {
		t.Helper()
		write(t, m, "d/f", text)
		got, err := ReadOffsets(m, "d/f")
		if err != nil {
			t.Errorf("ReadOffsets(%q): %v", text, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("ReadOffsets(%q) (-want +got)\n%s", text, d)
		}
	}
	none := map[topic.Partition]int64{}
	f("", none)
	f("0\n", none)
	f("0\n0\n", none)
	f("0\r\n1\r\nmy-topic 3 42\r\n", map[topic.Partition]int64{{Topic: "my-topic", Partition: 3}: 42})
	f("0\n2\na 1 -1\na  2\t7\n", map[topic.Partition]int64{{Topic: "a", Partition: 1}: -1, {Topic: "a", Partition: 2}: 7})

	if got, err := ReadOffsets(m, "d/missing"); err != nil || len(got) != 0 {
		t.Errorf("missing file: got %v, %v, want no entries", got, err)
	}
}

func TestOffsetsCorrupt(t *testing.T) {
	m := newFS(t)
	f := func(text string, wantLine int, wantErr string) {
		t.Helper()
		write(t, m, "d/f", text)
		_, err := ReadOffsets(m, "d/f")
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || !errors.Is(err, ErrCorrupt) {
			t.Fatalf("ReadOffsets(%q) = %v, want a CorruptError", text, err)
		}
		if corrupt.Line != wantLine || !strings.Contains(err.Error(), wantErr) || !strings.HasPrefix(err.Error(), "d/f: ") {
			t.Errorf("ReadOffsets(%q) = %v, want line %d and %q", text, err, wantLine, wantErr)
		}
	}
	f("1\n0\n", 1, "version 1, want 0")
	f("x\n0\n", 1, "invalid syntax")
	f("0\nx\n", 2, "invalid syntax")
	f("0\n1\na 1\n", 3, "2 fields, want 3")
	f("0\n1\na 1 2 3\n", 3, "4 fields, want 3")
	f("0\n1\n\n", 3, "0 fields, want 3")
	f("0\n1\na x 2\n", 3, "invalid syntax")
	f("0\n1\na -1 2\n", 3, "partition number -1")
	f("0\n1\na 1 9223372036854775808\n", 3, "out of range")
	f("0\n2\na 1 2\n", 0, "1 entries, the header says 2")
	f("0\n0\na 1 2\n", 0, "1 entries, the header says 0")
	f("0\n-1\n", 0, "0 entries, the header says -1")
	f("0\n1\na 1 15", 3, "cut off")
	f("0\n2\na 1 15\na 1 97\n", 4, "a-1 is listed twice, with 15 and 97")
}

// The lines beside a damaged one count.
func TestOffsetsBesideDamage(t *testing.T) {
	m := newFS(t)
	f := func(text string, want map[topic.Partition]int64) {
		t.Helper()
		write(t, m, "d/f", text)
		got, err := ReadOffsets(m, "d/f")
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("ReadOffsets(%q): %v, want it corrupt", text, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("ReadOffsets(%q) (-want +got)\n%s", text, d)
		}
	}
	a, b := topic.Partition{Topic: "a", Partition: 1}, topic.Partition{Topic: "b", Partition: 2}
	f("0\n3\na 0 180\na 1 7\na 0 97\n", map[topic.Partition]int64{{Topic: "a", Partition: 0}: 97, {Topic: "a", Partition: 1}: 7})
	f("0\n2\na 1 5\nb 2 7", map[topic.Partition]int64{a: 5})
	f("0\n2\na 1 \x005\nb 2 7\n", map[topic.Partition]int64{b: 7})
	f("0\n2\na 1 5\nb 2 7\n0\n2\na 1 5\nb 2 7\n", map[topic.Partition]int64{a: 5, b: 7})
	f("0\n3\na 1 5\nb 2 7\n", map[topic.Partition]int64{a: 5, b: 7})
	f("8\n1\na 1 5\n", map[topic.Partition]int64{a: 5})
	f("0\n\"\na 1 5\n", map[topic.Partition]int64{a: 5})
}

func TestOffsetsWrite(t *testing.T) {
	m := newFS(t)
	offsets := map[topic.Partition]int64{{Topic: "b", Partition: 0}: 1, {Topic: "my-topic", Partition: 3}: 42, {Topic: "b", Partition: 10}: 2}
	if err := WriteOffsets(m, "d/f", offsets); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, m, "d/f"), "0\n3\nb 0 1\nb 10 2\nmy-topic 3 42\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := ReadOffsets(m, "d/f"); err != nil || !cmp.Equal(got, offsets) {
		t.Errorf("read back %v, %v", got, err)
	}
}

func TestEpochs(t *testing.T) {
	m := newFS(t)
	want := []EpochEntry{{0, 0}, {4, 120}}
	if err := WriteEpochs(m, "d/f", want); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, m, "d/f"), "0\n2\n0 0\n4 120\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := ReadEpochs(m, "d/f"); err != nil || !cmp.Equal(got, want) {
		t.Errorf("read back %v, %v, want %v", got, err, want)
	}
	if got, err := ReadEpochs(m, "d/missing"); err != nil || len(got) != 0 {
		t.Errorf("missing file: got %v, %v, want no entries", got, err)
	}
	write(t, m, "d/f", "0\n1\n2147483648 0\n")
	if _, err := ReadEpochs(m, "d/f"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("epoch beyond int32: got %v, want ErrCorrupt", err)
	}
}

func TestPartitionMetadata(t *testing.T) {
	m := newFS(t)
	id := uuid.UUID{7: 1, 15: 2}
	if err := WritePartitionMetadata(m, "d/f", id); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, m, "d/f"), "version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := ReadPartitionMetadata(m, "d/f"); err != nil || got != (PartitionMetadata{0, id}) {
		t.Errorf("read back %v, %v, want %v", got, err, id)
	}
	if _, err := ReadPartitionMetadata(m, "d/missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v, want fs.ErrNotExist", err)
	}
	for _, text := range []string{
		"", "version: 0", "topic_id: AAAAAAAAAAEAAAAAAAAAAg", "version: -1\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg",
		"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "version: 0\ntopic_id: short", "version 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg",
	} {
		write(t, m, "d/f", text)
		if got, err := ReadPartitionMetadata(m, "d/f"); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: got %v, %v, want ErrCorrupt", text, got, err)
		}
	}
}

func TestCleanShutdown(t *testing.T) {
	m := newFS(t)
	f := func(text string, want int64) {
		t.Helper()
		write(t, m, "d/"+CleanShutdown, text)
		clean, epoch, err := TakeCleanShutdown(m, "d/"+CleanShutdown, "d")
		if !clean || epoch != want || err != nil {
			t.Errorf("%q: got %v, %d, %v, want true, %d", text, clean, epoch, err, want)
		}
		if clean, _, err := TakeCleanShutdown(m, "d/"+CleanShutdown, "d"); clean || err != nil {
			t.Errorf("taken twice: got %v, %v, want false", clean, err)
		}
	}
	f(`{"version":0,"brokerEpoch":77}`, 77)
	f(`{"version":0,"brokerEpoch":77,"more":[1]}`, 77)
	f("", -1)
	f("{", -1)
	f(`{"brokerEpoch":"x"}`, -1)

	if err := WriteCleanShutdown(m, "d/"+CleanShutdown, 77); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, m, "d/"+CleanShutdown), `{"version":0,"brokerEpoch":77}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The files of Kafka 4.4.0 in testdata come out as Kafka wrote them.
func TestFilesOfKafka(t *testing.T) {
	f := func(name string, rewrite func(path string) error) {
		t.Helper()
		want, err := os.ReadFile("testdata/kafka-4.4.0/" + name)
		if err != nil {
			t.Fatal(err)
		}
		path := t.TempDir() + "/" + name
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := rewrite(path); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(sortedLines(want), sortedLines(got)); d != "" {
			t.Errorf("%s (-Kafka +gregor)\n%s", name, d)
		}
	}
	rewriteOffsets := func(path string) error {
		offsets, err := ReadOffsets(vfs.OS, path)
		if err == nil {
			err = WriteOffsets(vfs.OS, path, offsets)
		}
		return err
	}
	for _, name := range []string{RecoveryPoints, LogStartOffsets, HighWatermarks, CleanerOffsets} {
		f(name, rewriteOffsets)
	}
	f(LeaderEpochs, func(path string) error {
		entries, err := ReadEpochs(vfs.OS, path)
		if err == nil {
			err = WriteEpochs(vfs.OS, path, entries)
		}
		return err
	})
	f(PartitionMetadataFile, func(path string) error {
		m, err := ReadPartitionMetadata(vfs.OS, path)
		if err == nil {
			err = WritePartitionMetadata(vfs.OS, path, m.TopicID)
		}
		return err
	})
	f(CleanShutdown, func(path string) error {
		dir := strings.TrimSuffix(path, "/"+CleanShutdown)
		clean, epoch, err := TakeCleanShutdown(vfs.OS, path, dir)
		if err == nil && !clean {
			return fmt.Errorf("%s not found", path)
		}
		if err == nil {
			err = WriteCleanShutdown(vfs.OS, path, epoch)
		}
		return err
	})
}

// One byte of a header that is not what it was costs no entry, whatever it is now: a file says the same as
// before, with an error. Only a count that is higher than it was may be right, of a file that has lost
// its end.
func TestOneByteOfAHeader(t *testing.T) {
	for _, count := range []int{1, 2, 10, 12, 99, 100} {
		offsets := make(map[topic.Partition]int64)
		var epochs []EpochEntry
		var losses []Loss
		var transactions []LostTransaction
		for i := range count {
			n := int64(i)
			offsets[topic.Partition{Topic: "1a-topic", Partition: int32(i)}] = 100 + n
			epochs = append(epochs, EpochEntry{int32(i), 10 * n})
			losses = append(losses, Loss{10 * n, 10*n + 5})
			transactions = append(transactions, LostTransaction{n, 10 * n, 10*n + 5, Abort})
		}
		m := newFS(t)
		everyHeader(t, m, count, WriteOffsets(m, "d/f", offsets), offsets, ReadOffsets)
		everyHeader(t, m, count, WriteEpochs(m, "d/f", epochs), epochs, ReadEpochs)
		everyHeader(t, m, count, WriteLosses(m, "d/f", losses), losses, ReadLosses)
		everyHeader(t, m, count, WriteTransactions(m, "d/f", transactions), transactions, ReadTransactions)
	}
}

// everyHeader reads d/f with every byte of its header as others: of one bit's difference, and such as
// mean something there.
func everyHeader[T any](t *testing.T, m *vfs.Mem, count int, err error, want T, readFile func(vfs.FS, string) (T, error)) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, m, "d/f")
	for i := range len("0\n\n") + len(strconv.Itoa(count)) {
		flipped := make([]byte, 8)
		for bit := range flipped {
			flipped[bit] = text[i] ^ 1<<bit
		}
		for _, b := range append(flipped, "\x00\n\r\v 0123456789-+aJ\xff"...) {
			damaged := text[:i] + string([]byte{b}) + text[i+1:]
			if b == text[i] {
				continue
			}
			write(t, m, "d/f", damaged)
			got, err := readFile(m, "d/f")
			if lines := strings.SplitN(damaged, "\n", 3); lines[0] == "0" {
				if n, bad := strconv.Atoi(strings.TrimSpace(lines[1])); bad == nil && n >= count {
					continue
				}
			}
			if !errors.Is(err, ErrCorrupt) || !Whole(err) || !cmp.Equal(got, want) {
				t.Fatalf("%T %q: got %v, %v (whole %v)", want, damaged[:min(len(damaged), 40)], got, err, Whole(err))
			}
		}
	}
}

// Where more than a header is wrong, or a line may be missing, the rest is not taken for whole.
func TestNotWhole(t *testing.T) {
	m := newFS(t)
	f := func(text string) {
		t.Helper()
		write(t, m, "d/f", text)
		if got, err := ReadEpochs(m, "d/f"); err == nil || Whole(err) || got != nil {
			t.Errorf("%q: got %v, %v, want nothing", text, got, err)
		}
	}
	f("0\n3\n0 0\n4 120\n")            // cut, or another count
	f("0\n2\n0 0\n4 120\n0\n2\n0 0\n") // doubled
	f("0\x1a2\n0 0\n4 12")
	f("0\x1a2\n0 0\n4 x\n")
	f("\x1a\x1a2\n0 0\n4 120\n")
	f("\x00\x00\x00\x00")
}
