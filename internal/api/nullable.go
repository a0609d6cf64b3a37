package api

// textOf is what a nullable string says, "" for null.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
