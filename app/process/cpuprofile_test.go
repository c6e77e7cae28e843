package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// What Stop leaves is a profile of CPU time that pprof reads.
func TestProfileIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpu.pb.gz")
	var said strings.Builder
	p := &Process{Err: &said}
	c := CPUProfile{Name: path}
	if err := c.Start(p); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the file is there before its time: %v", err)
	}
	second := &CPUProfile{Name: filepath.Join(t.TempDir(), "second")}
	if err := second.Start(p); err == nil {
		t.Fatal("a second profile began beside the first")
	}
	if err := c.Stop(p); err != nil || !strings.Contains(said.String(), path) {
		t.Fatalf("wrote %q: %v, want %q", said.String(), err, path)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := profile.Parse(f)
	if err != nil || got.PeriodType == nil || got.PeriodType.Type != "cpu" {
		t.Fatalf("%+v: %v, want a profile of CPU time", got, err)
	}
}

func TestStartNamesWhatCannotBeWritten(t *testing.T) {
	c := CPUProfile{Name: filepath.Join(t.TempDir(), "absent", "cpu.pb.gz")}
	if err := c.Start(&Process{}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v, want that the directory is missing", err)
	}
	if err := c.Stop(&Process{}); err != nil {
		t.Fatalf("Stop of no profile: %v", err)
	}
}
