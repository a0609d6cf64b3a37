package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// A DecideRequest ends a transaction of which nobody knows whether it was committed.
type DecideRequest struct {
	Partition   string `json:"partition"` // topic-number
	ProducerID  int64  `json:"producerId"`
	FirstOffset int64  `json:"firstOffset"`
	Commit      bool   `json:"commit"`
}

// HandleTransactions adds what `gregor topics decide` asks for:
//
//	POST /decide   DecideRequest; DecideRequest when it is on the disk
func (s *Server) HandleTransactions(place func(topic.Partition) (l *commitlog.Log, dir string)) {
	s.Handle("POST /decide", JSON(func(r *http.Request) (any, error) {
		var q DecideRequest
		if err := ReadJSON(r, &q); err != nil {
			return nil, err
		}
		p, err := parsePartition(q.Partition)
		if err != nil {
			return nil, err
		}
		l, _ := place(p)
		if l == nil {
			return nil, Refuse(http.StatusNotFound, "%v: no such log", p)
		}
		err = l.DecideTxn(q.ProducerID, q.FirstOffset, q.Commit)
		if errors.Is(err, commitlog.ErrNotUndecided) {
			return nil, &StatusError{http.StatusConflict, err}
		}
		return q, err
	}))
}

// Decide ends an undecided transaction.
func (c *Client) Decide(ctx context.Context, q DecideRequest) error {
	if err := c.Post(ctx, "/decide", q, nil); err != nil {
		return fmt.Errorf("%s: %w", q.Partition, err)
	}
	return nil
}
