package intercept

import (
	"context"
	enc "encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/simccl/simccl/intercept/collector"
)

// TestDescendants: under --data a process that simccl has not started, itself or through others, is
// refused, and so is simccl itself.
func TestDescendants(t *testing.T) {
	d := &door{shows: true}
	self := os.Getpid()
	for _, c := range []struct {
		pid  int
		want string
	}{
		{os.Getppid(), "is no descendant of simccl"},
		{self, "is simccl itself"},
	} {
		if err := d.check(c.pid, c.pid, true, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("process %d: %v", c.pid, err)
		}
	}
	if err := (&door{}).check(os.Getppid(), os.Getppid(), true, nil); err != nil {
		t.Errorf("without --data nothing is moved, and a daemon's process is let in: %v", err)
	}
}

// TestRecords: what a program leaves for its record is refused by name where it is none: neither
// waited for, nor read beyond its size, nor believed.
func TestRecords(t *testing.T) {
	head := func(calls uint64, rest int) func(name string) error {
		return func(name string) error {
			return os.WriteFile(name, append(enc.LittleEndian.AppendUint64(nil, calls),
				make([]byte, rest)...), 0o600)
		}
	}
	for _, c := range []struct {
		name string
		make func(name string) error
		want string // "" for right
	}{
		{"a pipe", func(name string) error { return syscall.Mkfifo(name, 0o600) }, "it is no regular file"},
		{"a link", func(name string) error { return os.Symlink("/dev/zero", name) }, "it is no regular file"},
		{"a folder", func(name string) error { return os.Mkdir(name, 0o700) }, "it is no regular file"},
		{"much", func(name string) error {
			return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 1<<40))
		}, "more than the 4294967296 that are read"},
		{"sparse", func(name string) error {
			return errors.Join(head(9<<20, 8192)(name), os.Truncate(name, 1<<32))
		}, "more than 8388608 of all processes"},
		{"a group", func(name string) error {
			return errors.Join(head(2<<20, 8192)(name), os.Truncate(name, 1<<30))
		}, "a group of more than 1048576 calls"},
		{"more calls than its size", head(43, 8192),
			"it says that it has 43 calls, and its 8200 bytes have room for 42"},
		{"calls below 0", head(1<<64-1, 8192), "room for 42"},
		{"a short one", func(name string) error { return os.WriteFile(name, make([]byte, 100), 0o600) }, ""},
		{"calls of nobody", head(42, 8192), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(filepath.Join(dir, "record.123")); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			err = feed(collector.New(context.Background(), collector.Settings{Devices: collector.None,
				GPUs: 1}), root)
			var bad *RecordError
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.As(err, &bad) || bad.PID != 123 || !strings.Contains(err.Error(),
				c.want)):
				t.Errorf("%v, not %q", err, c.want)
			}
		})
	}
}
