package dump

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/segment"
)

func BenchmarkDump(b *testing.B) {
	for _, shape := range offlinetest.BenchShapes {
		dir := offlinetest.WriteSegment(b, offlinetest.BenchSize/2, shape)
		path := filepath.Join(dir, segment.Name(0, segment.LogFile, ""))
		for _, asJSON := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/json=%t", shape.Name, asJSON), func(b *testing.B) {
				info, err := os.Stat(path)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(info.Size())
				b.ReportAllocs()
				for b.Loop() {
					if err := Files(b.Context(), io.Discard, []string{path}, Options{PrintDataLog: true, JSON: asJSON}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
