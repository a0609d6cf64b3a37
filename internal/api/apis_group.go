package api

import "github.com/twmb/franz-go/pkg/kmsg"

// groupAPIs is the table of consumer groups. OffsetCommit and OffsetFetch 0, which Kafka
// gave up with ZooKeeper, use the same store as later versions.
func (s *Server) groupAPIs() []api {
	return []api{
		{key: int16(kmsg.OffsetCommit), min: 0, max: 10, handle: handle(s, s.offsetCommit)},
		{key: int16(kmsg.OffsetFetch), min: 0, max: 10, handle: handle(s, s.offsetFetch)},
		{key: int16(kmsg.FindCoordinator), min: 0, max: 6, handle: handle(s, s.findCoordinator)},
		{key: int16(kmsg.JoinGroup), min: 0, max: 9, handle: handle(s, s.joinGroup)},
		{key: int16(kmsg.Heartbeat), min: 0, max: 4, handle: handle(s, s.heartbeat)},
		{key: int16(kmsg.LeaveGroup), min: 0, max: 5, handle: handle(s, s.leaveGroup)},
		{key: int16(kmsg.SyncGroup), min: 0, max: 5, handle: handle(s, s.syncGroup)},
		{key: int16(kmsg.DescribeGroups), min: 0, max: 6, handle: handle(s, s.describeGroups)},
		{key: int16(kmsg.ListGroups), min: 0, max: 5, handle: handle(s, s.listGroups)},
		{key: int16(kmsg.DeleteGroups), min: 0, max: 3, handle: handle(s, s.deleteGroups)},
		{key: int16(kmsg.OffsetDelete), min: 0, max: 0, handle: handle(s, s.offsetDelete)},
	}
}
