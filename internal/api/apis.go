package api

import "github.com/twmb/franz-go/pkg/kmsg"

// coreAPIs is the table of what touches logs directly, and of ApiVersions.
func (s *Server) coreAPIs() []api {
	return []api{
		{key: int16(kmsg.Produce), min: 0, max: 13, handle: s.produce},
		{key: apiVersionsKey, min: 0, max: 4, handle: handle(s.apiVersions)},
	}
}
