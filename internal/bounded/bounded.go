// Package bounded reads whole inputs up to a size limit, without reading beyond it: a huge file, an endless
// device and a pipe without a writer end with an error, in little memory and soon after cancellation.
package bounded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// TooLargeError reports that an input is larger than what its kind may be.
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
	return read(r, name, limit, 0)
}

// chunk is the number of bytes read at a time from a file without a known size.
const chunk = 1 << 20

// read gathers chunks and joins them once: a buffer that grows by copying takes
// several times the limit. expect is the size of a file, 0 where it is not known.
func read(r io.Reader, name string, limit, expect int64) ([]byte, error) {
	var parts [][]byte
	total := int64(0)
	for next := min(max(expect, 512)+1, limit+1); ; next = min(chunk, limit+1-total) {
		part := make([]byte, next)
		n, err := io.ReadFull(r, part)
		parts, total = append(parts, part[:n]), total+int64(n)
		switch {
		case total > limit:
			return nil, &TooLargeError{Name: name, Limit: limit}
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return join(parts, total), nil
		case err != nil:
			return nil, err
		}
	}
}

func join(parts [][]byte, total int64) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	out := make([]byte, 0, total)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// ReadFile reads the file that open opens (for example os.Open of path). It returns when ctx ends, even while
// open waits for the writer of a pipe.
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
	return read(until{ctx, f}, name, limit, info.Size())
}

// until is a reader that fails once its context ends.
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
