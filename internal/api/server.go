package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/coordinator/group"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/random"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/wire"
)

// Deps is what the handlers call. All fields are set before New and only read afterwards.
type Deps struct {
	NodeID    int32
	ClusterID string
	Config    func() *config.Broker  // as it is now: server.properties and dynamic values
	Metadata  func() *metadata.Image // as this node knows it

	Controller Controller
	Active     ActiveController // nil: this node's, always
	Brokers    BrokerController // of controller listeners only, as the next
	Partitions PartitionController
	Logs       *logdir.Manager
	Replicas   *replica.Manager
	Sessions   *replica.Sessions // of fetches
	Groups     *group.Coordinator
	Now        func() time.Time // nil: time.Now
	Random     io.Reader        // of ids of client instances; nil: the host's; never fails
	Logger     *slog.Logger     // nil: no log
}

// A Controller decides changes of the metadata. It may be another node's, or say that it is none
// (controller.NotController).
type Controller interface {
	CreateTopics(ctx context.Context, topics []controller.NewTopic, validateOnly bool) ([]controller.CreatedTopic, error)
	DeleteTopics(ctx context.Context, topics []controller.TopicRef) ([]controller.DeletedTopic, error)
	CreatePartitions(ctx context.Context, topics []controller.PartitionsIncrease, validateOnly bool) ([]error, error)
	AlterConfigs(ctx context.Context, resources []controller.AlterConfig, validateOnly bool) ([]error, error)
	AllocateProducerIDs(ctx context.Context, broker int32, brokerEpoch int64) (first int64, count int, err error)
}

// A BrokerController decides what brokers ask for themselves. Controller listeners serve it.
type BrokerController interface {
	RegisterBroker(ctx context.Context, r controller.Registration) (epoch int64, err error)
	Heartbeat(ctx context.Context, h controller.Heartbeat) (controller.HeartbeatAnswer, error)
	AssignDirectories(ctx context.Context, broker int32, list []controller.DirectoryAssignment) error
}

// A PartitionController decides what leaders of partitions ask for. Controller listeners serve it.
type PartitionController interface {
	AlterPartition(ctx context.Context, broker int32, brokerEpoch int64, changes []controller.ISRChange) ([]controller.ISRState, error)
}

// A Server answers requests. It is a wire.Handler.
type Server struct {
	Deps
	apis [kmsg.MaxKey + 1]*api

	fetchMaxBytes int // fetch.max.bytes

	producerIDs producerIDs
	oldClients  oldClients
	conversions *conversions
	helpers     chan struct{} // a token for each goroutine that appends beside a handler
	unserved    unserved
	decoding    sync.Mutex // held while a long body is decoded
}

// An api is one row of a table: the versions of a key that are served, and by what.
type api struct {
	key      int16
	min, max int16
	unlisted bool // answered, but not named by ApiVersions
	// forwarded: the controller decides, so that a broker sends it on to the node whose controller is active.
	forwarded bool
	handle    handler
	stats     *requestStats
}

// A Request is what wire read: key, version, client and body.
type Request = wire.Request

// A handler appends the body of the answer to w.Buf.
type handler func(ctx context.Context, r *Request, w *wire.Response) error

// New returns the Server of the listeners for clients and brokers.
func New(d Deps) *Server {
	s := newServer(d)
	table := s.table()
	for i := range table {
		if table[i].forwarded {
			table[i].handle = s.decided(table[i].handle)
		}
	}
	s.serve(table)
	return s
}

// NewOfControllers returns the Server of the controller listeners, by which brokers, other controllers and tools reach
// this node's controller, whether it is the active one or not.
func NewOfControllers(d Deps) *Server {
	s := newServer(d)
	s.serve(s.controllerTable())
	return s
}

func newServer(d Deps) *Server {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Random == nil {
		d.Random = random.Host("client instances")
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{Deps: d, fetchMaxBytes: d.Config().Int("fetch.max.bytes"), conversions: newConversions(), helpers: make(chan struct{}, helpersMax)}
	return s
}

// serve serves the rows of a table.
func (s *Server) serve(table []api) {
	for _, a := range table {
		if s.apis[a.key] != nil {
			panic(fmt.Sprintf("BUG: two handlers of API key %d", a.key))
		}
		a.stats = &requestStats{versions: make([]atomic.Int64, a.max+1)}
		s.apis[a.key] = &a
	}
}

// Reasons to close a connection.
var (
	errUnknownKey         = errors.New("unknown API key")
	errUnsupportedVersion = errors.New("unsupported version")
	errMalformed          = errors.New("malformed request")
)

// Handle answers r, or fails when there is no answer: the key or the version is unknown,
// or the body cannot be read.
func (s *Server) Handle(ctx context.Context, r *Request, w *wire.Response) error {
	a := s.find(r.Key)
	switch {
	case a == nil:
		s.noteUnserved(r)
		return fmt.Errorf("%w %d", errUnknownKey, r.Key)
	case r.Key == apiVersionsKey && r.Version > a.max:
		s.apiVersionsTooNew(a, w)
		return nil
	case r.Version < a.min || r.Version > a.max:
		s.noteUnserved(r)
		return fmt.Errorf("%w %d of %s", errUnsupportedVersion, r.Version, kmsg.NameForKey(r.Key))
	}
	a.stats.versions[r.Version].Add(1)
	r.Worked = 0
	if err := a.handle(ctx, r, w); err != nil {
		return fmt.Errorf("%s version %d: %w", kmsg.NameForKey(r.Key), r.Version, err)
	}
	if !w.IsDeferred() {
		a.stats.times.observe(r.Received.Elapsed(), r.Worked)
	}
	return nil
}

func (s *Server) find(key int16) *api {
	if key < 0 || int(key) >= len(s.apis) {
		return nil
	}
	return s.apis[key]
}

// Bodies that are decoded into structs are bounded below the size of a request: an array
// that takes a byte of the body for each element takes up to some hundred in memory.
const (
	structBodyMax = 4 << 20
	opaqueBodyMax = 16 << 20  // JoinGroup and SyncGroup carry bytes of the clients
	longBody      = 256 << 10 // one longer body is decoded at a time
)

// decode reads a body into a struct, which may be kept: kmsg's byte slices are views of what
// it reads, so that is a copy.
func (s *Server) decode(req kmsg.Request, body []byte) error {
	limit := structBodyMax
	if key := kmsg.Key(req.Key()); key == kmsg.JoinGroup || key == kmsg.SyncGroup {
		limit = opaqueBodyMax
	}
	if len(body) > limit {
		return fmt.Errorf("%w: a body of %d bytes, at most %d are allowed", errMalformed, len(body), limit)
	}
	if len(body) > longBody {
		s.decoding.Lock()
		defer s.decoding.Unlock()
	}
	if err := req.ReadFrom(bytes.Clone(body)); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	return nil
}

// handle adapts a function of kmsg's structs.
func handle[Q, A any, PQ interface {
	*Q
	kmsg.Request
}, PA interface {
	*A
	kmsg.Response
}](s *Server, f func(ctx context.Context, r *Request, req PQ) (PA, error)) handler {
	codes := findCodes(reflect.TypeFor[A]())
	return func(ctx context.Context, r *Request, w *wire.Response) error {
		req := PQ(new(Q))
		req.SetVersion(r.Version)
		if err := s.decode(req, r.Body); err != nil {
			return err
		}
		if err := w.Flush(); err != nil { // f may block
			return err
		}
		resp, err := f(ctx, r, req)
		if err != nil {
			return err
		}
		codes.count(reflect.ValueOf(resp).Elem(), s.apis[r.Key].stats)
		resp.SetVersion(r.Version)
		w.Buf = resp.AppendTo(w.Buf)
		return nil
	}
}
