package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker without authorizer says so, once for each thing that was asked.
func TestACLsWithoutAuthorizer(t *testing.T) {
	s := imageServer(t, "")
	want := kerr.SecurityDisabled.Code
	for version := range int16(4) {
		if got := ask[kmsg.DescribeACLsResponse](t, s, version, kmsg.NewPtrDescribeACLsRequest()).ErrorCode; got != want {
			t.Errorf("DescribeAcls %d: error %d, want %d", version, got, want)
		}
		create := kmsg.NewPtrCreateACLsRequest()
		create.Creations = make([]kmsg.CreateACLsRequestCreation, 2)
		created := ask[kmsg.CreateACLsResponse](t, s, version, create).Results
		if len(created) != 2 || created[0].ErrorCode != want || created[1].ErrorCode != want {
			t.Errorf("CreateAcls %d: %+v", version, created)
		}
		remove := kmsg.NewPtrDeleteACLsRequest()
		remove.Filters = make([]kmsg.DeleteACLsRequestFilter, 1)
		removed := ask[kmsg.DeleteACLsResponse](t, s, version, remove).Results
		if len(removed) != 1 || removed[0].ErrorCode != want {
			t.Errorf("DeleteAcls %d: %+v", version, removed)
		}
	}
}
