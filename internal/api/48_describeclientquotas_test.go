package api

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/metadata"
)

func testQuota(key string, value float64, entity ...metadata.EntityData) metadata.Record {
	q := metadata.NewClientQuotaRecord()
	q.Entity, q.Key, q.Value = entity, key, value
	return q
}

func TestDescribeClientQuotas(t *testing.T) {
	alice := metadata.EntityData{EntityType: "user", EntityName: kmsg.StringPtr("alice")}
	everyone := metadata.EntityData{EntityType: "user"}
	client := metadata.EntityData{EntityType: "client-id", EntityName: kmsg.StringPtr("c")}
	s := imageServer(t, "",
		testQuota("producer_byte_rate", 1, alice), testQuota("consumer_byte_rate", 2, everyone), testQuota("request_percentage", 3, alice, client))
	f := func(strict bool, want []float64, components ...kmsg.DescribeClientQuotasRequestComponent) {
		t.Helper()
		req := kmsg.NewPtrDescribeClientQuotasRequest()
		req.Strict, req.Components = strict, components
		var got []float64
		for _, e := range ask[kmsg.DescribeClientQuotasResponse](t, s, 1, req).Entries {
			for _, v := range e.Values {
				got = append(got, v.Value)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("strict %v, %+v (-want +got):\n%s", strict, components, diff)
		}
	}
	user := func(match kmsg.QuotasMatchType, name *string) kmsg.DescribeClientQuotasRequestComponent {
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: "user", MatchType: match, Match: name}
	}
	f(false, []float64{1, 2, 3})
	f(true, nil)
	f(false, []float64{1, 3}, user(matchExact, kmsg.StringPtr("alice")))
	f(true, []float64{1}, user(matchExact, kmsg.StringPtr("alice")))
	f(false, []float64{2}, user(matchDefault, nil))
	f(true, []float64{1, 2}, user(matchAny, nil))

	req := kmsg.NewPtrDescribeClientQuotasRequest()
	req.Components = []kmsg.DescribeClientQuotasRequestComponent{user(matchAny, nil), user(matchAny, nil)}
	if got := ask[kmsg.DescribeClientQuotasResponse](t, s, 1, req); got.ErrorCode != kerr.InvalidRequest.Code || got.Entries != nil {
		t.Errorf("twice the same type: error %d, entries %v, want %v and null", got.ErrorCode, got.Entries, kerr.InvalidRequest)
	}
}

// What a filter may ask for.
func TestCheckQuotaFilter(t *testing.T) {
	type component = kmsg.DescribeClientQuotasRequestComponent
	name := kmsg.StringPtr("n")
	f := func(want *kerr.Error, components ...component) {
		t.Helper()
		err := checkQuotaFilter(components)
		if want == nil && err != nil || want != nil && code(err) != want.Code {
			t.Errorf("%+v: got %v, want %v", components, err, want)
		}
	}
	ip, user := component{EntityType: "ip", MatchType: matchAny}, component{EntityType: "user", MatchType: matchDefault}
	f(nil)
	f(nil, ip)
	f(nil, user)
	f(nil, user, component{EntityType: "client-id", MatchType: matchExact, Match: name})
	f(kerr.InvalidRequest, ip, user)
	f(kerr.InvalidRequest, user, ip)
	f(kerr.InvalidRequest, user, user)
	f(kerr.InvalidRequest, component{MatchType: matchAny})
	f(kerr.UnsupportedVersion, component{EntityType: "host", MatchType: matchAny})
	f(kerr.InvalidRequest, component{EntityType: "user", MatchType: matchExact - 1})
	f(kerr.InvalidRequest, component{EntityType: "user", MatchType: matchAny + 1})
	f(kerr.InvalidRequest, component{EntityType: "user", MatchType: matchExact})
	f(kerr.InvalidRequest, component{EntityType: "user", MatchType: matchAny, Match: name})
	f(kerr.InvalidRequest, component{EntityType: "user", MatchType: matchDefault, Match: name})
}

func TestDescribeUserSCRAM(t *testing.T) {
	alice := metadata.NewUserScramCredentialRecord()
	alice.Name, alice.Mechanism, alice.Iterations = "alice", 1, 8192
	s := imageServer(t, "", alice)
	req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	resp := ask[kmsg.DescribeUserSCRAMCredentialsResponse](t, s, 0, req)
	if len(resp.Results) != 1 || resp.Results[0].User != "alice" || resp.Results[0].CredentialInfos[0].Iterations != 8192 {
		t.Errorf("all: got %+v, want alice", resp.Results)
	}
	req.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{{Name: "bob"}, {Name: "alice"}, {Name: "alice"}}
	resp = ask[kmsg.DescribeUserSCRAMCredentialsResponse](t, s, 0, req)
	if len(resp.Results) != 2 || resp.Results[0].ErrorCode != kerr.DuplicateResource.Code || resp.Results[1].ErrorCode != kerr.ResourceNotFound.Code {
		t.Errorf("got %+v, want alice twice refused, bob not found", resp.Results)
	}
}
