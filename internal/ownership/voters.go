package ownership

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/quorum"
)

// voterRefusals say who else decides in the cluster.
func voterRefusals(e *Evidence) []error {
	if e.Several {
		return differentVoters(e)
	}
	refusals := configRefusals(e)
	for _, c := range e.Metadata.Claims {
		if why := refuseClaim(c, e.Logs.NodeID); why != "" {
			refusals = append(refusals, fmt.Errorf("%w: %s: %s: %s", ErrRefused, c.Path, c.Says, why))
		}
	}
	if len(refusals) > 0 {
		refusals[0] = fmt.Errorf("%w; gregor would decide alone from then on, and fork the cluster. Start the node with Kafka, or, if the others are gone for good, with %s",
			refusals[0], takeOverFlag)
	}
	return refusals
}

// differentVoters are the claims that others vote than the configuration file says. Those who have the log
// could decide without the new ones, and the new ones without the log.
func differentVoters(e *Evidence) (refusals []error) {
	var configured []int32
	for _, voter := range e.QuorumVoters {
		configured = append(configured, voterID(voter))
	}
	slices.Sort(configured)
	for _, c := range e.Metadata.Claims {
		if c.Voters != nil && !slices.Equal(slices.Sorted(slices.Values(c.Voters)), configured) {
			refusals = append(refusals, fmt.Errorf("%w: %s: %s: the voters are %s, but controller.quorum.voters=%s; the file must name those who have the log. "+
				"If the others of them are gone for good, this node can decide alone from now on with %s",
				ErrRefused, c.Path, c.Says, ids(c.Voters), strings.Join(e.QuorumVoters, ","), takeOverFlag))
		}
	}
	return refusals
}

// refuseClaim says what is against being the only voter, "" for nothing.
func refuseClaim(c quorum.Claim, node int32) string {
	switch {
	case c.Voters != nil && !slices.Contains(c.Voters, node):
		return fmt.Sprintf("the voters are %s, and this node, node.id=%d, is none of them", ids(c.Voters), node)
	case len(c.Voters) > 1:
		return fmt.Sprintf("the voters are %s, and this node, node.id=%d, is only one of them", ids(c.Voters), node)
	case c.Leader >= 0 && c.Leader != node:
		return fmt.Sprintf("the leader is node %d, and this node is node.id=%d", c.Leader, node)
	}
	return ""
}

func ids(list []int32) string {
	var text []string
	for _, id := range list {
		text = append(text, strconv.Itoa(int(id)))
	}
	return strings.Join(text, ", ")
}

// configRefusals are those of a configuration that was written for a node of a larger cluster.
func configRefusals(e *Evidence) []error {
	sole := slices.ContainsFunc(e.QuorumVoters, func(voter string) bool { return voterID(voter) == e.Logs.NodeID })
	refuse := func(key string, list []string, why string) []error {
		return []error{fmt.Errorf("%w: %s=%s: %s", ErrRefused, key, strings.Join(list, ","), why)}
	}
	switch {
	case len(e.QuorumVoters) > 1:
		return refuse("controller.quorum.voters", e.QuorumVoters, "the quorum has several voters")
	case len(e.QuorumVoters) == 1 && !sole:
		return refuse("controller.quorum.voters", e.QuorumVoters, fmt.Sprintf("this node, node.id=%d, is no voter", e.Logs.NodeID))
	case len(e.BootstrapServers) > 1:
		return refuse("controller.quorum.bootstrap.servers", e.BootstrapServers, "the quorum has several controllers")
	case len(e.BootstrapServers) == 1 && len(e.Roles) > 0 && !slices.Contains(e.Roles, "controller"):
		return refuse("process.roles", e.Roles, "with controller.quorum.bootstrap.servers="+e.BootstrapServers[0]+" this node is no voter")
	}
	return nil
}

// voterID is the id in id@host:port, -1 if there is none.
func voterID(voter string) int32 {
	text, _, _ := strings.Cut(voter, "@")
	id, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return -1
	}
	return int32(id)
}
