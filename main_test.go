package gregor_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/gregor-kafka/gregor"
)

// childEnv makes the test binary a broker on the data directory that it names.
const childEnv = "GREGOR_TEST_BROKER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		serveForever(dir)
	}
	goleak.VerifyTestMain(m)
}

func serveForever(dir string) {
	b, err := gregor.Start(context.Background(), gregor.Options{DataDir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(b.Addr())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	if err := b.Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A child is a broker in a process of its own, which can be killed.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	return startChildAfter(t, dir, ":")
}

// startChildAfter starts a child from a shell that runs a command first.
func startChildAfter(t *testing.T, dir, command string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: exec.Command("sh", "-c", command+`; exec "$0"`, exe)}
	c.cmd.Stderr = t.Output()
	c.cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the broker did not start: %q, %v", line, err)
	}
	c.addr = strings.TrimSpace(line)
	return c
}

// stop ends the process in the clean way.
func (c *child) stop() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("the stop was not clean: %v", err)
	}
}

// kill ends the process as a crash would. Killing it again does nothing.
func (c *child) kill() {
	if c.cmd.ProcessState != nil {
		return
	}
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Error(err)
	}
	c.cmd.Wait() // reports the signal
}
