package segment_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/gregor-kafka/gregor/record"
	"github.com/gregor-kafka/gregor/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

// batch makes a batch with one record.
func batch(offset, timestamp int64, value string) []byte {
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: offset, LeaderEpoch: new(int32(0))})
	if err := b.Append(record.Record{Offset: offset, Timestamp: timestamp, Value: []byte(value)}); err != nil {
		panic(err)
	}
	return b.Build()
}

// write makes a segment with three batches in a directory.
func write(fsys vfs.FS, dir string) error {
	if err := vfs.MkdirAll(fsys, dir, 0o755); err != nil {
		return err
	}
	w, err := segment.Create(fsys, dir, 0, segment.Options{})
	if err != nil {
		return err
	}
	for i := range int64(3) {
		if err := w.Append(batch(i, 1000*i, fmt.Sprint("value ", i))); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

func Example() {
	fsys := vfs.NewMem() // or vfs.OS
	if err := write(fsys, "data/orders-0"); err != nil {
		fmt.Println(err)
		return
	}
	bases, _ := segment.List(fsys, "data/orders-0")
	for _, base := range bases {
		s, err := segment.Open(fsys, "data/orders-0", base)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close()
		for b, err := range s.Batches(1) { // from offset 1 on
			if err != nil {
				fmt.Println(err)
				return
			}
			for r := range b.Batch.Records() {
				fmt.Println(r.Offset, string(r.Value))
			}
		}
		found, _, _ := s.OffsetByTimestamp(1500, 0)
		fmt.Println("since 1500 ms:", found.Offset)
	}
	// Output:
	// 1 value 1
	// 2 value 2
	// since 1500 ms: 2
}

// Recover takes over what a crash has left.
func ExampleRecover() {
	fsys := vfs.NewMem()
	dir := "data/orders-0"
	if err := write(fsys, dir); err != nil {
		fmt.Println(err)
		return
	}
	f, _ := fsys.OpenFile(dir+"/"+segment.Name(0, segment.LogFile), os.O_RDWR, 0)
	torn := batch(3, 3000, "torn")
	size, _ := f.Size()
	_, _ = f.WriteAt(torn[:40], size)
	_ = f.Close()

	w, cut, err := segment.Recover(fsys, dir, 0, segment.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	next, _ := w.NextOffset()
	fmt.Println(cut, "bytes cut, next offset", next)
	fmt.Println(w.Append(torn), w.Close())
	// Output:
	// 40 bytes cut, next offset 3
	// <nil> <nil>
}

// A Reader passes by what is damaged once it was looked for.
func ExampleReader_Scrub() {
	fsys := vfs.NewMem()
	dir := "data/orders-0"
	if err := write(fsys, dir); err != nil {
		fmt.Println(err)
		return
	}
	f, _ := fsys.OpenFile(dir+"/"+segment.Name(0, segment.LogFile), os.O_RDWR, 0)
	_, _ = f.WriteAt([]byte("?"), int64(len(batch(0, 0, "value 0"))+70)) // in the second batch
	_ = f.Close()

	s, err := segment.Open(fsys, dir, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for b, err := range s.Batches(0) {
		fmt.Println(b.Batch != nil && err == nil, errors.Is(err, record.ErrCorrupt))
	}
	damages, _ := s.Scrub(3)
	for _, d := range damages {
		fmt.Printf("lost: offsets [%d, %d)\n", d.First, d.End)
	}
	for b := range s.Batches(0) {
		fmt.Println("offset", b.Batch.BaseOffset())
	}
	// Output:
	// true false
	// false true
	// lost: offsets [1, 2)
	// offset 0
	// offset 2
}
