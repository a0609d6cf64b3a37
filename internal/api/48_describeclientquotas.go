package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

// Entity types of client quotas, and the ways to match a name.
var quotaEntityTypes = []string{"user", "client-id", "ip"}

const (
	matchExact   = 0
	matchDefault = 1
	matchAny     = 2
)

// describeClientQuotas lists the quotas whose entity has every component asked for, and
// no other one when the request is strict.
func (s *Server) describeClientQuotas(_ context.Context, _ *Request, req *kmsg.DescribeClientQuotasRequest) (*kmsg.DescribeClientQuotasResponse, error) {
	resp := kmsg.NewPtrDescribeClientQuotasResponse()
	if err := checkQuotaFilter(req.Components); err != nil {
		resp.ErrorCode, resp.ErrorMessage = code(err), message(err)
		resp.Entries = nil
		return resp, nil
	}
	resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
	for q := range s.Metadata().ClientQuotas() {
		if quotaMatches(q, req) {
			resp.Entries = append(resp.Entries, describedQuota(q))
		}
	}
	return resp, nil
}

func checkQuotaFilter(components []kmsg.DescribeClientQuotasRequestComponent) error {
	seen := make(map[string]bool)
	for _, c := range components {
		switch {
		case c.EntityType == "":
			return refuse(kerr.InvalidRequest, "an entity type is empty")
		case !slices.Contains(quotaEntityTypes, c.EntityType):
			return refuse(kerr.UnsupportedVersion, "unknown entity type "+strconv.Quote(c.EntityType)+": want user, client-id or ip")
		case seen[c.EntityType]:
			return refuse(kerr.InvalidRequest, "duplicate entity type "+c.EntityType)
		case c.MatchType < matchExact || c.MatchType > matchAny:
			return refuse(kerr.InvalidRequest, "unknown match type "+strconv.Itoa(int(c.MatchType)))
		case c.MatchType == matchExact && c.Match == nil:
			return refuse(kerr.InvalidRequest, "an exact match needs a name")
		case c.MatchType != matchExact && c.Match != nil:
			return refuse(kerr.InvalidRequest, "a name is only for an exact match")
		}
		seen[c.EntityType] = true
	}
	if seen["ip"] && len(seen) > 1 {
		return refuse(kerr.InvalidRequest, "entity type ip cannot be combined")
	}
	return nil
}

func quotaMatches(q *metadata.ClientQuota, req *kmsg.DescribeClientQuotasRequest) bool {
	if req.Strict && len(q.Entity) != len(req.Components) {
		return false
	}
	for _, c := range req.Components {
		i := slices.IndexFunc(q.Entity, func(e metadata.EntityData) bool { return e.EntityType == c.EntityType })
		if i < 0 {
			return false
		}
		name := q.Entity[i].EntityName
		switch {
		case c.MatchType == matchExact && (name == nil || *name != *c.Match),
			c.MatchType == matchDefault && name != nil:
			return false
		}
	}
	return true
}

func describedQuota(q *metadata.ClientQuota) kmsg.DescribeClientQuotasResponseEntry {
	entry := kmsg.NewDescribeClientQuotasResponseEntry()
	for _, e := range q.Entity {
		entity := kmsg.NewDescribeClientQuotasResponseEntryEntity()
		entity.Type, entity.Name = e.EntityType, e.EntityName
		entry.Entity = append(entry.Entity, entity)
	}
	for _, key := range slices.SortedFunc(maps.Keys(q.Limits), cmp.Compare[string]) {
		value := kmsg.NewDescribeClientQuotasResponseEntryValue()
		value.Key, value.Value = key, q.Limits[key]
		entry.Values = append(entry.Values, value)
	}
	return entry
}
