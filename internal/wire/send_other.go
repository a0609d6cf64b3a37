//go:build !linux

package wire

// A writer has nothing to remember where there is no sendfile that we use.
type writer struct{}

func (c *Conn) initWriter() {}

func (c *Conn) writeMore(b []byte) error {
	_, err := c.nc.Write(b)
	return err
}

func (c *Conn) sendSlice(f *file) error { return c.copySlice(f) }
