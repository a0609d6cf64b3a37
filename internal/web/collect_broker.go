package web

import (
	"runtime/debug"
	"strconv"

	"github.com/gregor-kafka/gregor/internal/metrics"
)

var (
	brokerState = gauge("kafka_server_kafkaserver_brokerstate",
		"1 starting, 2 loading logs, 3 running, 7 shutting down.")
	brokerInfo = gauge("gregor_info",
		"Always 1; the labels say who this is.", "version", "cluster_id", "node_id")
	ready = gauge("gregor_ready", "1 when clients get what they ask for, as /health has it.")
)

// Broker collects the identity of a broker and its state.
func Broker(clusterID string, nodeID int32, health func() Health) Collector {
	version := version()
	return func(w *metrics.Writer) {
		h := health()
		w.Single(brokerState, int64(h.State))
		w.Begin(ready)
		w.Bool(h.Ready())
		w.Begin(brokerInfo)
		w.Int(1, version, clusterID, strconv.Itoa(int(nodeID)))
	}
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
