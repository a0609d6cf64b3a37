package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds of what clients may ask for. There is no bound on the time that an answer takes:
// a forced clean waits until the log is clean.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	maxBodyBytes   = 1 << 20
)

// A Server answers HTTP requests from the first ServeSocket or ServeTCP until Shutdown.
// All methods may be called concurrently, and handlers may be added while it serves.
type Server struct {
	logger      *slog.Logger
	mux         *http.ServeMux
	connections int // of each transport; further ones wait in the kernel's queue

	base   context.Context // of all requests
	cancel context.CancelFunc

	// mu guards what Shutdown ends, and the list of collectors.
	mu struct {
		sync.Mutex
		closed     bool
		servers    []*http.Server
		socket     *socketFile
		collectors []Collector
	}
	serving sync.WaitGroup
}

// New returns a Server that listens nowhere yet and answers only for health, with metrics
// of the process, and what Handle and Collect add. On each transport it serves so many connections
// at a time.
func New(logger *slog.Logger, health func() Health, connections int) *Server {
	s := &Server{logger: logger, mux: http.NewServeMux(), connections: connections}
	s.base, s.cancel = context.WithCancel(context.Background())
	s.handleHealth(health)
	s.handleMetrics()
	return s
}

// Handle adds a handler; the pattern is http.ServeMux's, with a method. What changes
// anything must not be GET: that is served to everybody who reaches the TCP listener.
// The request's context ends with the connection and at Shutdown.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// ServeSocket serves everything on SocketName in a log directory whose lock the caller
// holds until after Shutdown: a socket that is there already is left over and replaced.
// Whoever may write to the socket may administer the broker; that is its owner only.
func (s *Server) ServeSocket(dir string) error {
	l, file, err := listenSocket(dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return errors.Join(l.Close(), file.remove())
	}
	s.mu.socket = file
	s.serveLocked(l, s.mux)
	return nil
}

// ServeTCP serves GET requests on l, which Shutdown closes.
func (s *Server) ServeTCP(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		l.Close()
		return
	}
	s.serveLocked(l, readOnly(s.mux))
}

func (s *Server) serveLocked(l net.Listener, h http.Handler) {
	server := &http.Server{
		Handler:           http.MaxBytesHandler(h, maxBodyBytes),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return s.base },
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	s.mu.servers = append(s.mu.servers, server)
	s.serving.Go(func() {
		if err := server.Serve(limit(l, s.connections)); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("HTTP is not served any more", "address", l.Addr(), "err", err)
		}
	})
}

// readOnly lets only requests through that change nothing.
func readOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			writeError(w, Refuse(http.StatusMethodNotAllowed,
				"%s is served on %s in the broker's first log directory only", r.Method, SocketName))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Shutdown stops listening, tells handlers by their context, waits for their answers until
// ctx ends, then cuts the connections, and removes the socket. A second call does nothing.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	servers, socket := s.mu.servers, s.mu.socket
	s.mu.closed, s.mu.servers, s.mu.socket = true, nil, nil
	s.mu.Unlock()
	s.cancel()
	var errs []error
	if socket != nil {
		errs = append(errs, socket.remove()) // nobody should find it and be refused
	}
	for _, server := range servers {
		if server.Shutdown(ctx) != nil {
			errs = append(errs, server.Close())
		}
	}
	s.serving.Wait()
	return errors.Join(errs...)
}
