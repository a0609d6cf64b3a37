package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
)

// deleteTopics deletes topics by name, from version 6 on also by id. A topic that is
// named twice is refused once.
func (s *Server) deleteTopics(ctx context.Context, r *Request, req *kmsg.DeleteTopicsRequest) (*kmsg.DeleteTopicsResponse, error) {
	ctx, cancel := within(ctx, req.TimeoutMillis)
	defer cancel()
	refs, twice := deletions(req)
	answers := make([]controller.DeletedTopic, len(refs))
	var allowed []controller.TopicRef
	for i, ref := range refs {
		answers[i] = controller.DeletedTopic{Name: ref.Name, ID: ref.ID}
		switch {
		case !s.Config().Bool("delete.topic.enable"):
			answers[i].Err = deletionDisabled(r.Version)
		case twice[ref]:
			answers[i].Err = refuse(kerr.InvalidRequest, "duplicate topic")
		default:
			allowed = append(allowed, ref)
		}
	}
	deleted, err := s.Controller.DeleteTopics(ctx, allowed)
	resp := kmsg.NewPtrDeleteTopicsResponse()
	for _, answer := range answers {
		if answer.Err == nil {
			answer.Err = err // of the request as a whole
			if err == nil {
				answer, deleted = deleted[0], deleted[1:]
			}
		}
		resp.Topics = append(resp.Topics, deletedTopic(answer))
	}
	return resp, nil
}

// deletions lists what is to be deleted, each once, and says what was named twice.
func deletions(req *kmsg.DeleteTopicsRequest) (refs []controller.TopicRef, twice map[controller.TopicRef]bool) {
	twice = make(map[controller.TopicRef]bool)
	add := func(ref controller.TopicRef) {
		_, known := twice[ref]
		if !known {
			refs = append(refs, ref)
		}
		twice[ref] = known
	}
	for _, name := range req.TopicNames {
		add(controller.TopicRef{Name: name})
	}
	for _, t := range req.Topics {
		ref := controller.TopicRef{ID: t.TopicID}
		if t.Topic != nil {
			ref.Name = *t.Topic
		}
		add(ref)
	}
	return refs, twice
}

func deletionDisabled(version int16) error {
	code := kerr.TopicDeletionDisabled
	if version < 3 {
		code = kerr.InvalidRequest
	}
	return refuse(code, "delete.topic.enable is false")
}

func deletedTopic(d controller.DeletedTopic) kmsg.DeleteTopicsResponseTopic {
	t := kmsg.NewDeleteTopicsResponseTopic()
	if d.Name != "" {
		t.Topic = &d.Name
	}
	t.TopicID, t.ErrorCode, t.ErrorMessage = d.ID, code(d.Err), message(d.Err)
	return t
}
