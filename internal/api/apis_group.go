package api

// groupAPIs is the table of consumer groups.
func (s *Server) groupAPIs() []api {
	return []api{}
}
