package files

import (
	"testing"
)

func TestClassify(t *testing.T) {
	f := func(name string, kind Kind, base int64) {
		t.Helper()
		if gotKind, gotBase := Classify("/x/" + name); gotKind != kind || gotBase != base {
			t.Errorf("%s: got %d at %d, want %d at %d", name, gotKind, gotBase, kind, base)
		}
	}
	f("00000000000000000042.log", LogFile, 42)
	f("00000000000000000042.txnindex", TxnIndexFile, 42)
	f("00000000000000000042.snapshot", ProducerSnapshot, 42)
	f("00000000000000000042-0000000003.checkpoint", KRaftSnapshot, 42)
	f("00000000000000000042-0000000003.checkpoint.part", Leftover, 0)
	f("00000000000000000042-0000000003.checkpoint.received", Leftover, 0)
	f("00000000000000000042.log.deleted", Leftover, 0)
	f("bootstrap.checkpoint", KRaftSnapshot, 0)
	f("leader-epoch-checkpoint", EpochCheckpoint, 0)
	f("cleaner-offset-checkpoint", OffsetCheckpoint, 0)
	f("meta.properties", MetaProperties, 0)
	f("-.snapshot", OtherFile, 0)
	f("readme", OtherFile, 0)
}
