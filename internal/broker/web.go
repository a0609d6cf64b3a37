package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/gregor-kafka/gregor/internal/config"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/web"
)

func (b *Broker) setState(s web.State) { b.state.Store(int32(s)) }

// bindWeb takes the address of gregor.http.listener, if one is set.
func (b *Broker) bindWeb(ctx context.Context, c *config.Broker) error {
	address, err := c.HTTPListener()
	if address == "" || err != nil {
		return err
	}
	l, err := b.world.Network.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("gregor.http.listener: %w", err)
	}
	b.http = l
	b.onStop("HTTP listener", func(context.Context) error {
		l.Close() // the server has closed it already if it got to serve
		return nil
	})
	return nil
}

// serveWeb begins to answer for health and metrics. A log directory that cannot hold a
// socket, or has too long a path for one, is no reason not to serve clients.
func (b *Broker) serveWeb(context.Context, *config.Broker) error {
	b.web = web.New(b.logger, b.health, b.descriptors.web)
	b.web.Collect(web.Broker(b.logs.ClusterID(), b.logs.NodeID(), b.health), web.Logs(b.logs), web.Descriptors(b.descriptorUse))
	if first := b.logs.Dirs()[0]; first.Online && b.world.FS == nil { // and locked; sockets are the host's
		if err := b.web.ServeSocket(first.Path); err != nil {
			b.logger.Warn("gregor's own commands cannot reach this broker", "err", err)
		}
	}
	if b.http != nil {
		b.web.ServeTCP(b.http)
	}
	return nil
}

func (b *Broker) stopWeb(ctx context.Context) error {
	if b.web == nil {
		return nil
	}
	return b.web.Shutdown(ctx)
}

func (b *Broker) health() web.Health {
	h := web.Health{State: web.State(b.state.Load())}
	if h.State == web.Recovery {
		h.Reasons = append(h.Reasons, loadingReason(b.logs.Progress()))
	}
	if err := b.frozen.Load(); err != nil {
		h.Reasons = append(h.Reasons, fmt.Sprintf("the metadata does not change any more: %v", *err))
	}
	for _, d := range b.logs.Dirs() {
		if !d.Online {
			h.Reasons = append(h.Reasons, fmt.Sprintf("log directory %s is offline: %v", d.Path, d.Err))
		}
	}
	return h
}

// loadingReason says how far loading is.
func loadingReason(p logdir.Progress) string {
	var logs, done int64
	for i := range p.Dirs {
		logs += p.Dirs[i].Logs
		done += p.Dirs[i].LogsDone
	}
	reason := fmt.Sprintf("loading logs: %d of %d", done, logs)
	if p.Left > 0 {
		reason += fmt.Sprintf(", about %v left", p.Left.Round(time.Second))
	}
	return reason
}

// collect adds the metrics of the parts that Start makes behind serveWeb.
func (b *Broker) collect() {
	b.web.Collect(
		web.Replicas(b.replicas, b.api.Sessions), web.Requests(b.api), web.Connections(b.server.Load()),
		web.Cluster(b.logs.NodeID(), b.quorum.Image), web.Groups(b.groups), web.Cleaner(b.cleaner),
	)
}

// HTTPAddr is the host:port of /metrics and /health, or "" if they are not served on TCP.
func (b *Broker) HTTPAddr() string {
	if b.http == nil {
		return ""
	}
	return b.http.Addr().String()
}
