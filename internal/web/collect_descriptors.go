package web

import "github.com/gregor-kafka/gregor/internal/metrics"

var (
	descriptorLimit = gauge("gregor_descriptors_limit", "Files and sockets that the process may have open (ulimit -n).")
	descriptorShare = gauge("gregor_descriptors_share",
		"How they are divided: connections, segments, HTTP, and the reserve for everything else.", "use")
	descriptorsUsed = gauge("gregor_descriptors_used", "What is used of the shares of connections and segments.", "use")
)

// A DescriptorUse is how the descriptors of a process are divided and used.
type DescriptorUse struct {
	Limit, Reserve, Web          int
	Segments, SegmentsUsed       int
	Connections, ConnectionsUsed int
}

// Descriptors collects how descriptors are divided and used.
func Descriptors(use func() DescriptorUse) Collector {
	return func(w *metrics.Writer) {
		u := use()
		w.Single(descriptorLimit, int64(u.Limit))
		w.Begin(descriptorShare)
		w.Int(int64(u.Connections), "connections")
		w.Int(int64(u.Segments), "segments")
		w.Int(int64(u.Web), "http")
		w.Int(int64(u.Reserve), "reserve")
		w.Begin(descriptorsUsed)
		w.Int(int64(u.ConnectionsUsed), "connections")
		w.Int(int64(u.SegmentsUsed), "segments")
	}
}
