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
	refs := make([]controller.TopicRef, 0, len(req.TopicNames)+len(req.Topics))
	for _, name := range req.TopicNames {
		refs = append(refs, controller.TopicRef{Name: name})
	}
	for _, t := range req.Topics {
		ref := controller.TopicRef{ID: t.TopicID}
		if t.Topic != nil {
			ref.Name = *t.Topic
		}
		refs = append(refs, ref)
	}
	resp := kmsg.NewPtrDeleteTopicsResponse()
	if !s.Config().Bool("delete.topic.enable") {
		resp.Topics = refuseDeletion(refs, deletionDisabled(r.Version))
		return resp, nil
	}
	deleted, err := s.Controller.DeleteTopics(ctx, refs)
	if err != nil {
		resp.Topics = refuseDeletion(refs, err)
		return resp, nil
	}
	seen := make(map[controller.TopicRef]bool, len(refs))
	for i, d := range deleted {
		if !seen[refs[i]] {
			resp.Topics = append(resp.Topics, deletedTopic(d))
		}
		seen[refs[i]] = true
	}
	return resp, nil
}

func deletionDisabled(version int16) error {
	code := kerr.TopicDeletionDisabled
	if version < 3 {
		code = kerr.InvalidRequest
	}
	return refuse(code, "delete.topic.enable is false")
}

func refuseDeletion(refs []controller.TopicRef, err error) []kmsg.DeleteTopicsResponseTopic {
	var topics []kmsg.DeleteTopicsResponseTopic
	for _, ref := range refs {
		topics = append(topics, deletedTopic(controller.DeletedTopic{Name: ref.Name, ID: ref.ID, Err: err}))
	}
	return topics
}

func deletedTopic(d controller.DeletedTopic) kmsg.DeleteTopicsResponseTopic {
	t := kmsg.NewDeleteTopicsResponseTopic()
	if d.Name != "" {
		t.Topic = &d.Name
	}
	t.TopicID, t.ErrorCode, t.ErrorMessage = d.ID, code(d.Err), message(d.Err)
	return t
}
