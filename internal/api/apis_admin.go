package api

// adminAPIs is the table of what describes and changes the cluster.
func (s *Server) adminAPIs() []api {
	return []api{}
}
