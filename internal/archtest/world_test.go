package archtest

import (
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

// ofProcess lists what a broker takes from its World or its Options, by the names under which the process has it:
// all of a package, or those given. A star stands for any end of a name.
var ofProcess = map[string][]string{
	"log":           {"*"},
	"os/exec":       {"*"},
	"os/signal":     {"*"},
	"log/slog":      {"Default", "SetDefault", "Debug", "Info", "Warn", "Error", "Log", "LogAttrs", "With", "*Context"},
	"runtime/debug": {"Set*", "FreeOSMemory"},
	"net": {
		"Listen", "ListenTCP", "ListenUnix", "ListenPacket", "ListenConfig", "Dial*", "Lookup*", "Resolve*", "DefaultResolver", "Resolver", "Interface*", "File*",
	},
	"net/http": {"Get", "Head", "Post", "PostForm", "Default*", "ListenAndServe*", "Serve", "ServeTLS", "Handle", "HandleFunc"},
	"os": {
		"Open*", "Create*", "Mkdir*", "Remove*", "Rename", "ReadFile", "WriteFile", "ReadDir", "DirFS", "CopyFS", "Stat", "Lstat", "Ch*", "Lchown", "Link", "Symlink",
		"Readlink", "Truncate", "Hostname", "Getenv", "LookupEnv", "Environ", "Setenv", "ExpandEnv", "Getwd", "TempDir", "User*", "Getpid", "Exit", "Args", "Std*",
	},
	"golang.org/x/sys/unix":                          {"Getrlimit", "Setrlimit", "Open*", "Rename*", "Unlink*", "Mkdir*"},
	"github.com/prometheus/client_golang/prometheus": {"Default*", "MustRegister", "Register"},
}

// takesFromProcess lists the functions and variables that do it all the same, or the types all of whose methods
// may, and why.
var takesFromProcess = map[string]string{
	"internal/broker.hostNetwork":     hostsWorld,
	"internal/broker.hostDescriptors": hostsWorld,
	"vfs.osFS":                        hostsWorld,
	"vfs.osLock":                      hostsWorld,
	"vfs.dirEntry":                    hostsWorld,
	"vfs.tryLock":                     hostsWorld,
	"vfs.lockFile":                    hostsWorld,
	"internal/web.listenSocket":       socket,
	"internal/web.socketFile":         socket,
	"internal/web.dialSocket":         client,
	"internal/web.dialTCP":            client,
	"internal/web.exists":             client,
}

const (
	hostsWorld = "is the World of a broker on the host"
	socket     = "gregor.sock is the host's, and there only where the file system is"
	client     = "is for gregor's own commands, which ask a broker"
)

// TestWorldIsGiven: of the packages that a broker is made of none takes a file, a connection, a logger or a
// setting from the process.
func TestWorldIsGiven(t *testing.T) {
	c := checkModule(t)
	found := map[string]bool{}
	for _, p := range c.madeOf("internal/broker") {
		for _, u := range c.uses(p, isOfProcess) {
			by := exception(takesFromProcess, u.by)
			if takesFromProcess[by] == "" {
				t.Errorf("%s: %s uses %s: let a broker's World or Options give it, or say in %q why not", u.at, u.by, u.name, "takesFromProcess")
			}
			found[by] = true
		}
	}
	for name := range takesFromProcess {
		if !found[name] {
			t.Errorf("%s takes nothing from the process, it needs no exception", name)
		}
	}
}

func isOfProcess(importPath, name string) bool {
	return slices.ContainsFunc(ofProcess[importPath], func(pattern string) bool {
		matched, _ := path.Match(pattern, name)
		return matched
	})
}

// exception returns the key of a list of exceptions that a use is under: the function, the method, or its type.
func exception(list map[string]string, by string) string {
	if list[by] == "" {
		if method := strings.LastIndexByte(by, '.'); method > 0 && list[by[:method]] != "" {
			return by[:method]
		}
	}
	return by
}

// madeOf returns a package and all of the module that it imports, by way of others as well.
func (c *checker) madeOf(dir string) (list []*checked) {
	seen := map[*types.Package]bool{}
	var add func(pkg *types.Package)
	add = func(pkg *types.Package) {
		if seen[pkg] || !within(pkg.Path(), module) {
			return
		}
		seen[pkg] = true
		list = append(list, c.packages[pkg.Path()])
		for _, i := range pkg.Imports() {
			add(i)
		}
	}
	add(c.packages[path.Join(module, dir)].pkg)
	return list
}

// What the test sees.
func TestOfProcess(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		c := newChecker("../..")
		p, err := c.checkSource("package example\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range c.uses(p, isOfProcess) {
			got = append(got, u.by+" "+u.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	f(`import "os"; func f() { os.OpenFile("", os.O_RDWR, 0) }`, "example.f os.OpenFile")
	f(`import "os"; func f(err error) bool { return os.IsNotExist(err) || err == os.ErrDeadlineExceeded }`)
	f(`import "net"; func f(l net.Listener) (net.Conn, error) { return l.Accept() }`)
	f(`import "net"; type T struct{}; func (T) f() { new(net.Dialer).Dial("", "") }`, "example.T.f net.Dialer")
	f(`import "log/slog"; func f(l *slog.Logger) { l.Info(""); slog.InfoContext(nil, "") }`, "example.f slog.InfoContext")
	f(`import alias "log"; var l = alias.New(nil, "", 0)`, "example.l alias.New")
	f(`import "net/http"; func f(s *http.Server, m *http.ServeMux) { m.Handle("", nil); http.Handle("", nil) }`, "example.f http.Handle")
}

func TestException(t *testing.T) {
	list := map[string]string{"a/b.T": "why", "a/b.f": "why"}
	for by, want := range map[string]string{"a/b.T.m": "a/b.T", "a/b.T": "a/b.T", "a/b.f": "a/b.f", "a/b.U.m": "a/b.U.m", "a/b.g": "a/b.g"} {
		if got := exception(list, by); got != want {
			t.Errorf("%s: got %s, want %s", by, got, want)
		}
	}
}
