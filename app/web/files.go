package web

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/simccl/simccl/internal/bounded"
)

// files are what a page holds, by base name. They are an fs.FS.
type files map[string][]byte

// Open opens a file; folders there are none.
func (f files) Open(name string) (fs.File, error) {
	data, ok := f[strings.TrimPrefix(name, "./")]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &opened{Reader: bytes.NewReader(data), name: name}, nil
}

// ReadLimited reads a file of at most limit bytes.
func (f files) ReadLimited(name string, limit int64) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	return bounded.Read(file, name, limit)
}

// opened is a file that is read.
type opened struct {
	*bytes.Reader
	name string
}

func (o *opened) Close() error { return nil }

// Stat is for fs.File; no reader of a Spec's files asks for it.
func (o *opened) Stat() (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "stat", Path: o.name, Err: fs.ErrInvalid}
}

// maxFile bounds a file of the page: a browser's program has 4 GiB in all.
const maxFile = 512 << 20

// Put gives the Service a file. Machines that were loaded may have been made of one
// of that name, and are dropped.
func (s *Service) Put(name string, data []byte) error {
	if len(data) > maxFile {
		return &bounded.TooLargeError{Name: name, Limit: maxFile, Size: int64(len(data))}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name], s.sites = data, nil
	return nil
}

// read returns a file of the page.
func (s *Service) read(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.files[name]
	if !ok {
		return nil, fmt.Errorf("%s: the page has no file of that name; drop it here", name)
	}
	return data, nil
}

// written is a file that a run writes: it is kept in memory.
type written struct{ bytes.Buffer }

func (w *written) Finish(err error) error { return err }

// check returns the error of a cancelled call, nil to go on.
func check(ctx context.Context) error { return ctx.Err() }
