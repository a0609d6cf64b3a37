package web

import (
	"maps"
	"slices"
	"strconv"

	"github.com/gregor-kafka/gregor/internal/api"
	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/wire"
)

var (
	requests      = counter("kafka_network_requestmetrics_requests_total", "Requests.", "request", "version")
	requestErrors = counter("kafka_network_requestmetrics_errors_total",
		"Error codes in answers, NONE left out; an answer may have several.", "request", "error")
	requestTimes = histogram("kafka_network_requestmetrics_totaltimems",
		"Milliseconds from the last byte of a request to its answer, also those of waiting.", "request")
	requestLocalTimes = histogram("kafka_network_requestmetrics_localtimems",
		"Milliseconds that a request took before it waited for records, replicas, the disk or its group; all, if it did not wait.", "request")
	requestRemoteTimes = histogram("kafka_network_requestmetrics_remotetimems",
		"Milliseconds from the beginning of such a wait to the answer, of requests that waited.", "request")

	oldClientRequests = counter("gregor_old_client_requests_total",
		"Requests that Kafka 4 would not answer, or that needed a conversion of messages.",
		"client_id", "software", "software_version", "request", "version")
	oldClientConversions = counter("gregor_old_client_conversions_total",
		"Record sets and batches that were converted for them.", "client_id", "software", "software_version", "request", "version")

	conversionBytes    = gauge("gregor_conversion_bytes", "Memory of records that are being converted for old clients.")
	conversionBytesMax = gauge("gregor_conversion_max_bytes", "Bound of that memory; conversions beyond it wait.")

	connections         = gauge("kafka_server_socket_server_metrics_connection_count", "Open connections.", "listener")
	connectionsAccepted = counter("kafka_server_socket_server_metrics_connection_creation_total", "Connections that were accepted.", "listener")
	connectionsRefused  = counter("gregor_connections_refused_total",
		"Connections beyond max.connections, max.connections.per.ip or the descriptors that there are for them.", "listener")
	connectionsBySoftware = gauge("kafka_server_socket_server_metrics_connections",
		"Open connections by what clients say they are; kinds beyond 100 are (others).",
		"listener", "clientsoftwarename", "clientsoftwareversion")
	connectionsKilled = counter("kafka_network_socketserver_expiredconnectionskilledcount",
		"Connections that were closed because nothing came (connections.max.idle.ms).")
	connectionsDisplaced = counter("gregor_connections_displaced_total",
		"Connections that were idle and closed for others, because descriptors were short.")
	requestBuffers    = gauge("gregor_request_buffer_bytes", "Memory of long requests that are being read or handled.")
	requestBuffersMax = gauge("gregor_request_buffer_max_bytes", "Bound of that memory; requests beyond it wait.")
)

// Requests collects what clients ask for.
func Requests(s *api.Server) Collector {
	return func(w *metrics.Writer) {
		list := s.RequestStats()
		w.Begin(requests)
		for i := range list {
			for _, v := range slices.Sorted(maps.Keys(list[i].Versions)) {
				w.Int(list[i].Versions[v], list[i].API, strconv.Itoa(int(v)))
			}
		}
		w.Begin(requestErrors)
		for i := range list {
			for _, name := range slices.Sorted(maps.Keys(list[i].Errors)) {
				w.Int(list[i].Errors[name], list[i].API, name)
			}
		}
		times := func(f *metrics.Family, of func(*api.RequestStats) *metrics.Histogram) {
			w.Begin(f)
			for i := range list {
				if h := of(&list[i]); h.Count() > 0 {
					w.Histogram(h, list[i].API)
				}
			}
		}
		times(requestTimes, func(r *api.RequestStats) *metrics.Histogram { return r.Total })
		times(requestLocalTimes, func(r *api.RequestStats) *metrics.Histogram { return r.Local })
		times(requestRemoteTimes, func(r *api.RequestStats) *metrics.Histogram { return r.Remote })
		writeOldClients(w, s.OldClients())
		used, most := s.ConversionBytes()
		w.Single(conversionBytes, used)
		w.Single(conversionBytesMax, most)
	}
}

func writeOldClients(w *metrics.Writer, list []api.OldClientCount) {
	each := eachOf(w, list, func(c *api.OldClientCount) []string {
		return []string{clip(c.ClientID), clip(c.Software), clip(c.SoftwareVersion), c.API, strconv.Itoa(int(c.Version))}
	})
	each(oldClientRequests, func(c *api.OldClientCount) int64 { return c.Requests })
	each(oldClientConversions, func(c *api.OldClientCount) int64 { return c.Conversions })
}

// Connections collects who is connected.
func Connections(s *wire.Server) Collector {
	return func(w *metrics.Writer) {
		stats := s.Stats()
		each := eachOf(w, stats.Listeners, func(l *wire.ListenerStats) []string { return []string{l.Name} })
		each(connections, func(l *wire.ListenerStats) int64 { return int64(l.Connections) })
		each(connectionsAccepted, func(l *wire.ListenerStats) int64 { return l.Accepted })
		each(connectionsRefused, func(l *wire.ListenerStats) int64 { return l.Refused })
		w.Begin(connectionsBySoftware)
		for _, kind := range stats.Software {
			w.Int(int64(kind.Connections), kind.Listener, clip(kind.Name), clip(kind.Version))
		}
		w.Single(connectionsKilled, stats.Killed)
		w.Single(connectionsDisplaced, stats.Displaced)
		w.Single(requestBuffers, stats.BufferBytes)
		w.Single(requestBuffersMax, stats.BufferBytesMax)
	}
}
