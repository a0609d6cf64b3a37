package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListeners(t *testing.T) {
	f := func(text string, want ...Listener) {
		t.Helper()
		got, err := mustParse(t, text).Listeners()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	plain := Listener{Name: "PLAINTEXT", Port: 9092, Protocol: "PLAINTEXT", AdvertisedPort: 9092}
	f("", plain)
	f("listeners=PLAINTEXT://0.0.0.0:9092", plain)
	f("listeners=plaintext://127.0.0.1:0", Listener{Name: "PLAINTEXT", Host: "127.0.0.1", Protocol: "PLAINTEXT", AdvertisedHost: "127.0.0.1"})
	f("listeners=PLAINTEXT://[::1]:9092", Listener{Name: "PLAINTEXT", Host: "::1", Port: 9092, Protocol: "PLAINTEXT", AdvertisedHost: "::1", AdvertisedPort: 9092})
	f("listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\nadvertised.listeners=PLAINTEXT://kafka.example:19092",
		Listener{Name: "PLAINTEXT", Port: 9092, Protocol: "PLAINTEXT", AdvertisedHost: "kafka.example", AdvertisedPort: 19092},
		Listener{Name: "CONTROLLER", Port: 9093, Protocol: "PLAINTEXT", Controller: true, AdvertisedPort: 9093})
	f("listeners=INSIDE://a:1,OUTSIDE://b:2\nlistener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:plaintext",
		Listener{Name: "INSIDE", Host: "a", Port: 1, Protocol: "PLAINTEXT", AdvertisedHost: "a", AdvertisedPort: 1},
		Listener{Name: "OUTSIDE", Host: "b", Port: 2, Protocol: "PLAINTEXT", AdvertisedHost: "b", AdvertisedPort: 2})
}

func TestListenerErrors(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, _, err := Parse(strings.NewReader(text), "server.properties", nil)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
	f("listeners=SSL://:9093", "listeners: listener SSL uses SSL, which gregor does not serve yet: want PLAINTEXT")
	f("listeners=MINE://:9093", "listeners: no protocol for listener MINE: want MINE:PLAINTEXT in listener.security.protocol.map")
	f("listeners=localhost:9092", `listeners: "localhost:9092": want NAME://host:port`)
	f("listeners=PLAINTEXT://localhost", `listeners: "PLAINTEXT://localhost": want NAME://host:port`)
	f("listeners=PLAINTEXT://localhost:99999", `listeners: "PLAINTEXT://localhost:99999": want NAME://host:port, the port at most 65535`)
	f("listeners=PLAINTEXT://:1,PLAINTEXT://:2", "listeners: duplicate listener PLAINTEXT: want each name once")
	f("listeners=PLAINTEXT://:1,CONTROLLER://:1\ncontroller.listener.names=CONTROLLER", "listeners: listeners PLAINTEXT and CONTROLLER share port 1: want each port once")
	f("listeners=CONTROLLER://:1\ncontroller.listener.names=CONTROLLER", "listeners=CONTROLLER://:1: want at least one listener for clients, not named by controller.listener.names")
	f("advertised.listeners=PLAINTEXT://0.0.0.0:9092", `advertised.listeners: "PLAINTEXT://0.0.0.0:9092": clients cannot connect to that address: want a host name or address of this machine`)
	f("advertised.listeners=OTHER://a:9092", "advertised.listeners: listener OTHER is not in listeners")
	f("gregor.http.listener=9644", "gregor.http.listener=9644: want host:port")
	f("gregor.http.listener=HTTP://localhost:9644", "gregor.http.listener=HTTP://localhost:9644: want host:port")
	f("gregor.http.listener=localhost:99999", "gregor.http.listener=localhost:99999: want host:port, the port at most 65535")
	f("listener.security.protocol.map=A", `listener.security.protocol.map=A: "A": want NAME:PROTOCOL with each name once`)
}

func TestHTTPListener(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		b, _, err := Parse(strings.NewReader(text), "server.properties", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := b.HTTPListener(); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	f("", "")
	f("gregor.http.listener=", "")
	f("gregor.http.listener=127.0.0.1:9644", "127.0.0.1:9644")
	f("gregor.http.listener=[::1]:9644", "[::1]:9644")
	f("gregor.http.listener=0.0.0.0:9644", ":9644")
	f("gregor.http.listener=:0", ":0")
}
