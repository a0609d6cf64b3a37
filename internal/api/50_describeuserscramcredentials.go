package api

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// describeUserSCRAM says which SCRAM mechanisms users have, never the keys. No user asked
// for means all.
func (s *Server) describeUserSCRAM(_ context.Context, _ *Request, req *kmsg.DescribeUserSCRAMCredentialsRequest) (*kmsg.DescribeUserSCRAMCredentialsResponse, error) {
	resp := kmsg.NewPtrDescribeUserSCRAMCredentialsResponse()
	known := s.scramInfos()
	asked := make(map[string]int)
	for _, u := range req.Users {
		asked[u.Name]++
	}
	if len(req.Users) == 0 {
		for user := range known {
			asked[user] = 1
		}
	}
	for _, user := range slices.Sorted(maps.Keys(asked)) {
		result := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		result.User = user
		result.CredentialInfos = known[user]
		err := checkSCRAMUser(user, asked[user], len(result.CredentialInfos))
		if err != nil {
			result.CredentialInfos = nil
		}
		result.ErrorCode, result.ErrorMessage = code(err), message(err)
		resp.Results = append(resp.Results, result)
	}
	return resp, nil
}

func checkSCRAMUser(user string, times, credentials int) error {
	switch {
	case times > 1:
		return refuse(kerr.DuplicateResource, "duplicate user "+strconv.Quote(user))
	case credentials == 0:
		return refuse(kerr.ResourceNotFound, "user "+strconv.Quote(user)+" has no SCRAM credentials")
	}
	return nil
}

func (s *Server) scramInfos() map[string][]kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo {
	infos := make(map[string][]kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo)
	for key, record := range s.Metadata().Scram() {
		info := kmsg.NewDescribeUserSCRAMCredentialsResponseResultCredentialInfo()
		info.Mechanism, info.Iterations = key.Mechanism, record.Iterations
		infos[key.User] = append(infos[key.User], info)
	}
	return infos
}
