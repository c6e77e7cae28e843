// Package newfile writes files that appear under their name whole or not at
// all.
//
// It gets a path and bytes, and leaves either the finished file there or what
// was there before; an interrupted or failed writer leaves nothing behind. What
// is no regular file (a terminal, /dev/null, a pipe) cannot be replaced and is
// written as it is. It knows nothing of what the bytes mean.
package newfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is a file in the making, beside the place where it will be.
type File struct {
	*os.File
	to string // empty: written in place
}

// Create begins a file. Where the name is a symbolic link, what it points to
// will be replaced, and not the link.
func Create(path string) (*File, error) {
	at, err := os.Stat(path)
	switch {
	case err == nil && at.IsDir():
		return nil, &fs.PathError{Op: "create", Path: path, Err: syscall.EISDIR}
	case err == nil && !at.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &File{File: f}, err
	case err == nil:
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	for try := 0; ; try++ {
		// not os.CreateTemp, whose files others may not read whatever the umask says
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.%d", filepath.Base(path), os.Getpid(), try))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil || !errors.Is(err, fs.ErrExist) || try > 1000 {
			return &File{File: f, to: path}, err
		}
	}
}

// Finish ends the writing: without an error the file gets its name, else it is
// gone. It returns the first error.
func (f *File) Finish(err error) error {
	if e := f.Close(); err == nil {
		err = e
	}
	if f.to == "" {
		return err
	}
	if err == nil {
		err = os.Rename(f.Name(), f.to)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Write makes a file of data.
func Write(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return f.Finish(err)
}
