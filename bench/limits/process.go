package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A broker is a process with a directory of its own.
type broker struct {
	gregor, dir, addr string
	cmd               *exec.Cmd
}

func (o *options) start() (*broker, error) {
	dir, err := os.MkdirTemp(o.dir, "limits")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		return nil, err
	}
	b := &broker{gregor: o.gregor, dir: dir, addr: l.Addr().String()}
	l.Close()
	return b, b.serve()
}

func (b *broker) serve() error {
	b.cmd = exec.Command(b.gregor, "serve", "--data", b.dir, "--listen", b.addr)
	b.cmd.Stderr = os.Stderr
	if err := b.cmd.Start(); err != nil {
		return err
	}
	for range 3000 {
		if c, err := net.Dial("tcp", b.addr); err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s does not answer at %s", b.gregor, b.addr)
}

// restart measures a start and a stop.
func (b *broker) restart() error {
	began := time.Now()
	if err := b.serve(); err != nil {
		return err
	}
	fmt.Printf("the next start took %v\n", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	err := b.stop()
	fmt.Printf("and its stop %v (%v)\n", time.Since(began).Round(time.Millisecond), err)
	return nil
}

// startWithTopic starts a broker and makes the topic.
func (o *options) startWithTopic(ctx context.Context) (*broker, error) {
	b, err := o.start()
	if err != nil {
		return nil, err
	}
	if err := create(ctx, b.addr, o.partitions); err != nil {
		b.remove()
		return nil, err
	}
	return b, nil
}

func (b *broker) stop() error {
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return b.cmd.Wait()
}

func (b *broker) remove() {
	b.cmd.Process.Kill()
	b.cmd.Wait()
	os.RemoveAll(b.dir)
}

// memory returns a line of /proc/PID/status, such as VmHWM.
func (b *broker) memory(name string) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
