//go:build unix

package process

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOpenSoon: a pipe without a writer, or with one that says nothing more, is refused by name and not
// waited for, a file is read whole, and being interrupted ends the wait.
func TestOpenSoon(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("a job"), 0o600); err != nil {
		t.Fatal(err)
	}
	const never = time.Hour
	read := func(p *Process, name string, first, later time.Duration) (string, error) {
		in, err := p.openWithin(name, first, later)
		if err != nil {
			return "", err
		}
		defer in.Close()
		b, err := io.ReadAll(in)
		return string(b), err
	}
	p := &Process{}
	if _, err := read(p, pipe, 10*time.Millisecond, never); err == nil || !strings.Contains(err.Error(),
		"nothing came from it in 10ms") {
		t.Errorf("a pipe without a writer: %v", err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := read(&Process{Ctx: ended}, pipe, never, never); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	silent := make(chan struct{})
	defer close(silent)
	other := filepath.Join(dir, "other")
	if err := syscall.Mkfifo(other, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		if f, err := os.OpenFile(other, os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString("a job")
			<-silent
			f.Close()
		}
	}()
	if got, err := read(p, other, never, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(),
		"nothing came from it in 10ms") || got != "a job" {
		t.Errorf("a writer that stops: %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{file: "a job", filepath.Join(dir, "empty"): ""} {
		if got, err := read(p, name, never, never); err != nil || got != want {
			t.Errorf("%s: read %q: %v", name, got, err)
		}
	}
}
