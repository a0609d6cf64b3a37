package quorum

import (
	"io"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// Restore implements raft.FSM: a snapshot from the leader takes the place of the Image, and subscribers
// are told what differs.
func (m *stateMachine) Restore(r io.ReadCloser) error {
	b, err := io.ReadAll(io.LimitReader(r, checkpointSizeMax))
	if err != nil {
		return err
	}
	c, err := readCheckpoint(b)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.image.Load()
	if err := m.loadLocked(c, snapshotID{c.place.endOffset, c.epoch}); err != nil {
		return err
	}
	img := m.image.Load()
	delta := metadata.Diff(before, img)
	for _, f := range m.mu.subscribers {
		f(img, delta)
	}
	return nil
}
