package broker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/web"
)

// shortDir is a directory whose path leaves room for the name of a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gregor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// samples are what /metrics answered.
type samples map[string]*dto.MetricFamily

// httpGet asks gregor.http.listener.
func httpGet(t *testing.T, b *Broker, path string) (status int, text string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("http://" + b.HTTPAddr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func scrape(t *testing.T, b *Broker) samples {
	t.Helper()
	status, text := httpGet(t, b, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d", status)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

// value returns the sample with these labels and no others: pairs of name and value.
func (s samples) value(name string, labels ...string) float64 {
	for _, m := range s[name].GetMetric() {
		if len(m.GetLabel()) == len(labels)/2 && hasLabels(m, labels) {
			switch {
			case m.Counter != nil:
				return m.GetCounter().GetValue()
			case m.Histogram != nil:
				return float64(m.GetHistogram().GetSampleCount())
			}
			return m.GetGauge().GetValue()
		}
	}
	return -1
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

func TestMetrics(t *testing.T) {
	dir := shortDir(t)
	b := start(t, dir, "gregor.http.listener=127.0.0.1:0", "group.initial.rebalance.delay.ms=0")
	createTopic(t, admin(t, b), "orders")
	producer := connect(t, b, kgo.DefaultProduceTopic("orders"))
	for range 3 {
		if err := producer.ProduceSync(testContext(t), kgo.StringRecord("hello")).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	consumer := connect(t, b, kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("readers"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for n := 0; n < 3; {
		n += consumer.PollFetches(testContext(t)).NumRecords()
	}
	if err := consumer.CommitUncommittedOffsets(testContext(t)); err != nil {
		t.Fatal(err)
	}
	var s samples
	f := func(want float64, name string, labels ...string) {
		t.Helper()
		if got := s.value(name, labels...); got != want {
			t.Errorf("%s %v = %v, want %v", name, labels, got, want)
		}
	}
	positive := func(name string, labels ...string) {
		t.Helper()
		if got := s.value(name, labels...); got <= 0 {
			t.Errorf("%s %v = %v, want more than 0", name, labels, got)
		}
	}
	s = scrape(t, b)
	f(3, "kafka_server_kafkaserver_brokerstate")
	f(1, "gregor_ready")
	f(1, "gregor_info", "cluster_id", b.ClusterID(), "node_id", "1", "version", "(devel)")
	f(3, "kafka_log_log_logendoffset", "topic", "orders", "partition", "0")
	f(0, "kafka_log_log_logstartoffset", "topic", "orders", "partition", "0")
	f(1, "kafka_log_log_numlogsegments", "topic", "orders", "partition", "0")
	positive("kafka_log_log_size", "topic", "orders", "partition", "0")
	f(1, "kafka_cluster_partition_insyncreplicascount", "topic", "orders", "partition", "0")
	f(3, "kafka_server_brokertopicmetrics_messagesin_total", "topic", "orders")
	positive("kafka_server_brokertopicmetrics_bytesin_total")
	positive("kafka_server_brokertopicmetrics_bytesout_total", "topic", "orders")
	positive("kafka_network_requestmetrics_totaltimems", "request", "Produce")
	positive("kafka_network_requestmetrics_totaltimems", "request", "OffsetCommit")
	positive("kafka_network_requestmetrics_localtimems", "request", "Fetch")
	positive("kafka_network_requestmetrics_remotetimems", "request", "JoinGroup")
	positive("kafka_server_socket_server_metrics_connection_count", "listener", "PLAINTEXT")
	f(51, "kafka_server_replicamanager_leadercount")
	f(2, "kafka_controller_kafkacontroller_globaltopiccount")
	f(1, "kafka_coordinator_group_groupmetadatamanager_numgroupsstable")
	f(1, "kafka_coordinator_group_groupmetadatamanager_numoffsets")
	f(1, "gregor_group_members")
	f(0, "kafka_log_logmanager_offlinelogdirectorycount")
	positive("gregor_log_directory_free_bytes", "logdirectory", dir)
	f(0, "gregor_log_directory_full", "logdirectory", dir)
	f(0, "gregor_loading_seconds_left")
	positive("go_goroutines")
}

// The socket is there as long as the broker, in the first log directory only.
func TestSocket(t *testing.T) {
	first, second := shortDir(t), shortDir(t)
	b := start(t, first+","+second)
	c := web.NewSocketClient(first)
	defer c.Close()
	var health web.HealthAnswer
	if err := c.Get(testContext(t), "/health", &health); err != nil || !health.Ready || health.State != "running" {
		t.Errorf("got %+v, %v", health, err)
	}
	other := web.NewSocketClient(second)
	defer other.Close()
	if err := other.Get(testContext(t), "/health", nil); !errors.Is(err, web.ErrNoBroker) {
		t.Errorf("second directory: got %v, want ErrNoBroker", err)
	}
	stop(t, b)
	if _, err := os.Lstat(filepath.Join(first, web.SocketName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("socket after the stop: %v", err)
	}
}

// Before logs are loaded there is an answer, which is that the broker is not ready.
func TestHealthBeforeLoad(t *testing.T) {
	dir := shortDir(t)
	c, _, err := config.Parse(nil, "", []string{"log.dirs=" + dir, "listeners=PLAINTEXT://127.0.0.1:0", "gregor.http.listener=127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{logger: slog.New(slog.DiscardHandler), world: World{}.complete(), done: make(chan struct{})}
	for _, step := range []func(context.Context, *config.Broker) error{b.divideDescriptors, b.bind, b.openLogDirs, b.serveWeb} {
		if err := step(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	defer stop(t, b)
	b.setState(web.Recovery)
	if status, text := httpGet(t, b, "/health"); status != http.StatusServiceUnavailable || !strings.Contains(text, "loading logs: 0 of 0") {
		t.Errorf("/health: got %d %s", status, text)
	}
	if status, text := httpGet(t, b, "/health/live"); status != http.StatusOK {
		t.Errorf("/health/live: got %d %s", status, text)
	}
	s := scrape(t, b)
	if got := s.value("kafka_server_kafkaserver_brokerstate"); got != 2 {
		t.Errorf("state %v, want 2", got)
	}
	if s["gregor_loading_seconds_left"] == nil {
		t.Error("nothing is said about loading")
	}
}

func TestLoadingReason(t *testing.T) {
	f := func(p logdir.Progress, want string) {
		t.Helper()
		if got := loadingReason(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	dirs := []logdir.DirProgress{{Logs: 100, LogsDone: 20}, {Logs: 50, LogsDone: 5}}
	f(logdir.Progress{Left: -1, Dirs: dirs}, "loading logs: 25 of 150")
	f(logdir.Progress{Left: 90*time.Second + 400*time.Millisecond, Dirs: dirs}, "loading logs: 25 of 150, about 1m30s left")
}

// A taken port is an error before anything changes.
func TestHTTPPortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := filepath.Join(shortDir(t), "data")
	c, _, err := config.Parse(nil, "", []string{"log.dirs=" + dir, "listeners=PLAINTEXT://127.0.0.1:0", "gregor.http.listener=" + taken.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(testContext(t), Options{Config: c, Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.HasPrefix(err.Error(), "gregor.http.listener: ") {
		t.Errorf("got %v, want an error of gregor.http.listener", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("data directory: %v, want none", err)
	}
}

// A path that is too long for a socket costs the socket, not the broker.
func TestSocketPathTooLong(t *testing.T) {
	b := start(t, filepath.Join(shortDir(t), strings.Repeat("x", 150)))
	if err := b.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}
