package segment

import "testing"

// A crash may leave an aborted transaction without its batches: a truncation in front of it takes it away.
func TestTruncateDropsTransactionsWithoutBatches(t *testing.T) {
	s := create(t, newFS(t), 21, smallConfig())
	if err := s.AppendAborted(AbortedTxn{ProducerID: 1, FirstOffset: 30, LastOffset: 35, LastStableOffset: 36}); err != nil {
		t.Fatal(err)
	}
	if cut, err := s.TruncateTo(21); cut != 0 || err != nil {
		t.Errorf("%d bytes are cut, %v", cut, err)
	}
	if err := s.AppendAborted(AbortedTxn{ProducerID: 1, FirstOffset: 21, LastOffset: 23, LastStableOffset: 24}); err != nil {
		t.Error(err)
	}
}
