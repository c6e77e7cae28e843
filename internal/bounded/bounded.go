// Package bounded reads inputs whole, up to a limit that holds before anything
// beyond it is read: a file of any size, a device that never ends, and a pipe that
// nobody writes to end with an error, in little memory and soon after a cancel.
package bounded

import (
	"context"
	"fmt"
	"io"
	"io/fs"
)

// TooLargeError tells that an input is larger than what its kind may be.
type TooLargeError struct {
	Name  string
	Limit int64
	Size  int64 // 0 where it is not known
}

// Error names the input, its size where that is known, and the limit.
func (e *TooLargeError) Error() string {
	if e.Size > 0 {
		return fmt.Sprintf("%s: %d bytes, more than the %d that are read", e.Name, e.Size, e.Limit)
	}
	return fmt.Sprintf("%s: more than the %d bytes that are read", e.Name, e.Limit)
}

// Read reads all of r, or fails with a TooLargeError after limit bytes.
func Read(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &TooLargeError{Name: name, Limit: limit}
	}
	return data, err
}

// ReadFile reads the file that open opens (os.Open of path, say). It returns when
// ctx ends, also while open waits for the writer of a pipe.
func ReadFile(ctx context.Context, path string, limit int64, open func() (fs.File, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := readFile(ctx, path, limit, open)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("read %s: %w", path, ctx.Err())
	}
}

func readFile(ctx context.Context, path string, limit int64, open func() (fs.File, error)) ([]byte, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(ctx, f, path, limit)
}

// ReadFS reads a file of a file system.
func ReadFS(dir fs.FS, name string, limit int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(context.Background(), f, name, limit)
}

func readOpen(ctx context.Context, f fs.File, name string, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && info.Size() > limit {
		return nil, &TooLargeError{Name: name, Limit: limit, Size: info.Size()}
	}
	return Read(until{ctx, f}, name, limit)
}

// until reads as long as its context lasts.
type until struct {
	ctx context.Context
	io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}
