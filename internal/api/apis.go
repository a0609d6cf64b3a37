package api

// coreAPIs is the table of what touches logs directly, and of ApiVersions.
func (s *Server) coreAPIs() []api {
	return []api{
		{key: apiVersionsKey, min: 0, max: 4, handle: handle(s.apiVersions)},
	}
}
