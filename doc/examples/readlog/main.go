// Readlog prints every record in a log directory of Kafka: partition, offset, timestamp, key and value. It changes
// nothing and needs no broker; beside a broker that writes, it prints what is there now.
//
//	go run ./doc/examples/readlog /var/lib/kafka/data
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/gregor-kafka/gregor/segment"
	"github.com/gregor-kafka/gregor/vfs"
)

func main() {
	for _, dir := range os.Args[1:] {
		if err := printDirectory(os.Stdout, vfs.OS, dir); err != nil {
			log.Fatal(err)
		}
	}
}

// printDirectory prints the partitions, which are the folders with segments.
func printDirectory(w io.Writer, fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		partition := filepath.Join(dir, e.Name())
		bases, _ := segment.List(fsys, partition) // a file has none
		for _, base := range bases {
			if err := printSegment(w, fsys, partition, base); err != nil {
				return err
			}
		}
	}
	return nil
}

func printSegment(w io.Writer, fsys vfs.FS, dir string, base int64) error {
	s, err := segment.Open(fsys, dir, base)
	if err != nil {
		return err
	}
	defer s.Close()
	for b, err := range s.Batches(base) {
		if err != nil {
			return err
		}
		if b.Batch.IsControl() {
			continue // markers of transactions
		}
		for r, err := range b.Batch.Records() {
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t%q\t%q\n", filepath.Base(dir), r.Offset, r.Timestamp, r.Key, r.Value)
		}
	}
	return nil
}
