package replica

import "slices"

// PreferredReplica returns the replica that a consumer in a rack is to read from at an offset: the leader, unless it is
// in another rack and a follower in this one is in sync and has the offset; of several the one that has most. (KIP-392;
// Kafka class RackAwareReplicaSelector.)
func (s *PartitionState) PreferredReplica(rack []byte, offset int64, v *View) int32 {
	if s.leadership == nil || isIn(rack, s.Leader, v) {
		return s.Leader
	}
	best, most := s.Leader, int64(-1)
	for i := range s.leadership.followers {
		r := &s.leadership.followers[i]
		has := r.LogStart <= offset && offset <= r.LogEnd
		if has && r.LogEnd > most && slices.Contains(s.ISR, r.ID) && isIn(rack, r.ID, v) {
			best, most = r.ID, r.LogEnd
		}
	}
	return best
}

// isIn reports whether a broker that serves clients is in a rack.
func isIn(rack []byte, id int32, v *View) bool {
	b := v.Brokers.Broker(id)
	return b.Active() && b.Rack != nil && *b.Rack == string(rack)
}
