package wire

import (
	"fmt"
	"io"
)

// copyStep is how much of a file is read at a time where there is no sendfile.
const copyStep = 256 << 10

// send writes the first n bytes of w, with the files that belong between them, and lets go
// of those files.
func (c *Conn) send(w *Response, n int) error {
	files := 0
	for files < len(w.files) && w.files[files].at <= n {
		files++
	}
	if files == 0 {
		_, err := c.nc.Write(w.Buf[:n])
		return err
	}
	var err error
	at := 0
	for i := 0; i < files && err == nil; i++ {
		f := &w.files[i]
		if err = c.writeMore(w.Buf[at:f.at]); err == nil {
			err = c.sendFile(f)
		}
		at = f.at
	}
	if err == nil && at < n {
		_, err = c.nc.Write(w.Buf[at:n])
	}
	w.dropFiles(0, files)
	return err
}

func (c *Conn) sendFile(f *file) error {
	if f.body == nil {
		return c.sendSlice(f)
	}
	n, err := f.body.WriteTo(c.nc)
	if err == nil && n != int64(f.body.Size()) {
		panic(fmt.Sprintf("BUG: body of %d bytes wrote %d", f.body.Size(), n))
	}
	return err
}

// copySlice sends a stretch of a file through memory.
func (c *Conn) copySlice(f *file) error {
	size := f.slice.Size()
	b := getBuffer(min(size, copyStep))
	defer putBuffer(b)
	for off := 0; off < size; {
		piece := b.b[:min(size-off, copyStep)]
		n, err := f.slice.ReadAt(piece, int64(off))
		if n < len(piece) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := c.nc.Write(piece); err != nil {
			return err
		}
		off += n
	}
	return nil
}
