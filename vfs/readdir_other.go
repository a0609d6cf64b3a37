//go:build unix && !linux

package vfs

import (
	"io/fs"
	"os"
)

func (osFS) readDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

func (osFS) syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
