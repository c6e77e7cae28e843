package bounded_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/internal/bounded"
)

// endless yields zeros and counts them, as /dev/zero does.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.n += int64(len(p))
	return len(p), nil
}

// readFile is bounded.ReadFile with the operating system's files.
func readFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	return bounded.ReadFile(ctx, path, limit, func() (fs.File, error) { return os.Open(path) })
}

func TestReadEndsAtTheLimit(t *testing.T) {
	for size, ok := range map[int]bool{0: true, 99: true, 100: true, 101: false} {
		data, err := bounded.Read(strings.NewReader(strings.Repeat("x", size)), "f", 100)
		var large *bounded.TooLargeError
		if ok && (err != nil || len(data) != size) || !ok && !errors.As(err, &large) {
			t.Errorf("%d bytes of 100: %d, %v", size, len(data), err)
		}
	}
	var e endless
	_, err := bounded.Read(&e, "zero", 1000)
	var large *bounded.TooLargeError
	if !errors.As(err, &large) || large.Limit != 1000 || e.n > 1001 {
		t.Errorf("%v after %d bytes", err, e.n)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, bytes.Repeat([]byte("x"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := readFile(t.Context(), name, 1000); err != nil || len(data) != 1000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	var large *bounded.TooLargeError
	if _, err := readFile(t.Context(), name, 999); !errors.As(err, &large) || large.Size != 1000 {
		t.Error(err)
	}
	if _, err := readFile(t.Context(), dir, 999); !errors.Is(err, syscall.EISDIR) {
		t.Error(err)
	}
	if _, err := readFile(t.Context(), filepath.Join(dir, "none"), 999); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat("/dev/zero"); err == nil {
		if _, err := readFile(t.Context(), "/dev/zero", 1<<20); !errors.As(err, &large) {
			t.Error(err)
		}
	}
	if _, err := bounded.ReadFS(fstest.MapFS{"a": {Data: make([]byte, 10)}}, "a", 9); !errors.As(err,
		&large) {
		t.Error(err)
	}
}

// A pipe without a writer blocks the open itself; a cancel must still end it.
func TestCancelEndsTheWaitForAPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := readFile(ctx, name, 1000)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	go func() {
		if f, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString("text")
			_ = f.Close()
		}
	}()
	if data, err := readFile(t.Context(), name, 1000); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
}

// failing ends with an error of its own.
type failing struct{ left int }

var errBroken = errors.New("broken")

func (f *failing) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, errBroken
	}
	n := min(f.left, len(p), 7)
	f.left -= n
	return n, nil
}

func TestReadJoinsChunks(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // 3.2 MB
	got, err := bounded.Read(bytes.NewReader(want), "f", 4<<20)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := bounded.Read(&failing{left: 3000}, "f", 1<<20); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}
