package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const controllerListener = "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"

func TestQuorumVoters(t *testing.T) {
	f := func(text string, want ...Voter) {
		t.Helper()
		got, err := mustParse(t, text).QuorumVoters()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	f("")
	f("controller.quorum.voters=1@localhost:9093", Voter{1, "localhost", 9093})
	f(controllerListener+"node.id=2\ncontroller.quorum.voters=1@a:9093, 2@[::1]:9094", Voter{1, "a", 9093}, Voter{2, "::1", 9094})
	f("node.id=3\ncontroller.quorum.voters=1@a:1,2@b:1", Voter{1, "a", 1}, Voter{2, "b", 1}) // no voter: nobody has to reach it
	if got := (Voter{2, "::1", 9094}).Addr(); got != "[::1]:9094" {
		t.Errorf("the address is %s", got)
	}
}

func TestQuorumVoterErrors(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, _, err := Parse(strings.NewReader(text), "server.properties", nil)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
	for _, item := range []string{"localhost:9093", "1@localhost", "x@localhost:9093", "-1@localhost:9093", "1@localhost:0", "1@0.0.0.0:9093", "4294967296@a:1"} {
		f("controller.quorum.voters="+item, `controller.quorum.voters: "`+item+`": want id@host:port`)
	}
	f("controller.quorum.voters=1@a:1,1@b:1", "controller.quorum.voters=1@a:1,1@b:1: two voters have the id 1")
	f("node.id=1\ncontroller.quorum.voters=1@a:1,2@b:1", "controller.quorum.voters=1@a:1,2@b:1: the other voters have to reach node.id=1: "+
		"want a listener in listeners that controller.listener.names names")
}
