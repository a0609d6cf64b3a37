package quorum

import (
	"io"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// Restore implements raft.FSM: a snapshot from the leader takes the place of the Image, and subscribers
// are told what differs, when the publisher has come that far.
func (m *stateMachine) Restore(r io.ReadCloser) error {
	b, err := io.ReadAll(io.LimitReader(r, checkpointSizeMax))
	if err != nil {
		return err
	}
	c, err := readCheckpoint(b)
	if err != nil {
		return err
	}
	img, err := m.imageOf(c, snapshotID{c.place.endOffset, c.epoch})
	if err != nil {
		return err
	}
	m.hand(func() {
		before := m.image.Load()
		m.replace(img)
		m.tell(img, metadata.Diff(before, img))
	})
	return nil
}
