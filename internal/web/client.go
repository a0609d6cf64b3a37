package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// maxAnswerBytes bounds what a client takes into memory.
const maxAnswerBytes = 256 << 20

// ErrNoBroker: nobody answers in a log directory or at an address.
var ErrNoBroker = errors.New("no broker runs")

// A Client asks one broker. It may be used concurrently, until Close.
type Client struct {
	http http.Client
	base string // URL
}

// NewSocketClient returns a client of the broker whose first log directory is dir. The
// broker need not run yet: each request connects.
func NewSocketClient(dir string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, dir) }
	return &Client{http: http.Client{Transport: &http.Transport{DialContext: dial}}, base: "http://gregor"}
}

// NewHTTPClient returns a client of the broker whose gregor.http.listener is at host:port;
// it answers GET only.
func NewHTTPClient(address string) *Client {
	return &Client{
		http: http.Client{Transport: &http.Transport{DialContext: dialTCP}},
		base: "http://" + strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/"),
	}
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get asks for a path, which may have a query, and decodes the answer, unless that is nil.
// An error that the broker sent is a *StatusError.
func (c *Client) Get(ctx context.Context, path string, answer any) error {
	return c.do(ctx, http.MethodGet, path, nil, answer)
}

// Post sends a body, unless it is nil, and is otherwise like Get.
func (c *Client) Post(ctx context.Context, path string, question, answer any) error {
	var body []byte
	if question != nil {
		var err error
		if body, err = json.Marshal(question); err != nil {
			return err
		}
	}
	return c.do(ctx, http.MethodPost, path, body, answer)
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, answer any) error {
	status, text, err := c.exchange(ctx, method, path, body)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return &StatusError{status, errorOf(status, text)}
	case answer == nil:
		return nil
	}
	return json.Unmarshal(text, answer)
}

// exchange returns the answer as it is, with its status.
func (c *Client) exchange(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		var u *url.Error // says again what was asked
		if errors.As(err, &u) {
			err = u.Err
		}
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err == nil && len(text) > maxAnswerBytes {
		err = fmt.Errorf("answer has more than %d bytes", maxAnswerBytes)
	}
	return response.StatusCode, text, err
}

// errorOf returns the error in an answer whose status is not a success.
func errorOf(status int, text []byte) error {
	var e errorAnswer
	if json.Unmarshal(text, &e) == nil && e.Error != "" {
		return errors.New(e.Error)
	}
	return fmt.Errorf("the broker answers %d: %s", status, bytes.TrimSpace(text[:min(len(text), 200)]))
}

func dialSocket(ctx context.Context, dir string) (net.Conn, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		return c, nil
	}
	return nil, explainSocket(dir, path, err)
}

// explainSocket says what it means that a socket does not answer.
func explainSocket(dir, path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist) && !exists(dir):
		return fmt.Errorf("%w in %s: there is no such directory", ErrNoBroker, dir)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w in %s: it would have a %s there, if this is the first of its log.dirs", ErrNoBroker, dir, SocketName)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w in %s: its %s is left over from one that was killed", ErrNoBroker, dir, SocketName)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: only the user who runs the broker may use it", path, fs.ErrPermission)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w with gregor.http.listener at %s: connection refused", ErrNoBroker, address)
	}
	return c, err
}
