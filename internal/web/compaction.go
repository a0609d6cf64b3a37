package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/gregor-kafka/gregor/internal/cleaner"
	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/web/explain"
)

// A CleanRequest asks for the cleaning of a partition now.
type CleanRequest struct {
	Partition string `json:"partition"` // topic-number
	Roll      bool   `json:"roll"`      // the active segment too
}

// HandleCompaction adds what `gregor explain` and `gregor topics clean` ask for:
//
//	GET  /explain/TOPIC   explain.Report
//	POST /clean           CleanRequest; explain.Outcome when the partition is clean
func (s *Server) HandleCompaction(m *cleaner.Manager) {
	s.Handle("GET /explain/{topic}", JSON(func(r *http.Request) (any, error) {
		report, err := m.Explain(r.PathValue("topic"))
		return explain.Of(report), statusOf(err)
	}))
	s.Handle("POST /clean", JSON(func(r *http.Request) (any, error) {
		var q CleanRequest
		if err := ReadJSON(r, &q); err != nil {
			return nil, err
		}
		p, err := parsePartition(q.Partition)
		if err != nil {
			return nil, err
		}
		out, err := m.CleanNow(r.Context(), p, q.Roll)
		return explain.OutcomeOf(out), statusOf(err)
	}))
}

// parsePartition reads the name of a partition in a request.
func parsePartition(name string) (topic.Partition, error) {
	p, err := topic.ParsePartition(name)
	if err != nil {
		return p, Refuse(http.StatusBadRequest, "%w", err)
	}
	return p, nil
}

func statusOf(err error) error {
	switch {
	case errors.Is(err, cleaner.ErrUnknownPartition):
		return &StatusError{http.StatusNotFound, err}
	case errors.Is(err, cleaner.ErrNotCompacted), errors.Is(err, cleaner.ErrNothingToClean),
		errors.Is(err, cleaner.ErrPaused), errors.Is(err, cleaner.ErrAborted):
		return &StatusError{http.StatusConflict, err}
	case errors.Is(err, cleaner.ErrClosed), errors.Is(err, context.Canceled):
		return &StatusError{http.StatusServiceUnavailable, err}
	}
	return err
}
