package api

import "github.com/twmb/franz-go/pkg/kmsg"

// coreAPIs is the table of what touches logs directly, and of ApiVersions.
func (s *Server) coreAPIs() []api {
	return []api{
		{key: int16(kmsg.Produce), min: 0, max: 13, handle: s.produce},
		{key: int16(kmsg.Fetch), min: 0, max: 18, handle: s.fetch},
		{key: int16(kmsg.ListOffsets), min: 0, max: 11, handle: handle(s, s.listOffsets)},
		{key: apiVersionsKey, min: 0, max: 5, handle: handle(s, s.apiVersions)},
		{key: int16(kmsg.DeleteRecords), min: 0, max: 2, handle: handle(s, s.deleteRecords)},
		{key: int16(kmsg.OffsetForLeaderEpoch), min: 0, max: 4, handle: handle(s, s.offsetForLeaderEpoch)},
	}
}
