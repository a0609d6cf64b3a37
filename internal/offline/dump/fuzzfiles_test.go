package dump

import (
	"errors"
	"io"
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/check"
	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/vfs"
)

// Any bytes in the files of a partition can be dumped and checked.
func FuzzFiles(f *testing.F) {
	names := []string{
		"00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex", "00000000000000000000.txnindex",
		"00000000000000000007.snapshot", "00000000000000000007-0000000001.checkpoint", "leader-epoch-checkpoint", "partition.metadata",
		"quorum-state", "../replication-offset-checkpoint", "../meta.properties", "../bootstrap.checkpoint",
	}
	for i, kind := range []files.Kind{files.LogFile, files.OffsetIndexFile, files.TimeIndexFile, files.TxnIndexFile, files.ProducerSnapshot, files.KRaftSnapshot, files.EpochCheckpoint} {
		for _, s := range offlinetest.Seeds(f, "kafka-4.4.0-crash", kind) {
			f.Add(uint8(i), s)
		}
	}
	good := offlinetest.Seeds(f, "kafka-4.4.0-kraft-dynamic", files.LogFile)[0]
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		mem := vfs.NewMem()
		for _, partition := range []string{"t-0", "__cluster_metadata-0"} {
			dir := "/data/" + partition
			offlinetest.MustWrite(t, mem, dir+"/"+names[0], good)
			offlinetest.MustWrite(t, mem, dir+"/"+names[int(which)%len(names)], data)
		}
		fsys := offlinetest.ReadOnly{FS: mem}
		if _, err := check.Dirs(t.Context(), []string{"/data"}, check.Options{FS: fsys}); err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{{PrintDataLog: true}, {JSON: true}, {VerifyIndexOnly: true}, {IndexSanityCheck: true}} {
			o.FS = fsys
			if err := Files(t.Context(), io.Discard, []string{"/data", "/data/t-0/" + names[int(which)%len(names)]}, o); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
	})
}
