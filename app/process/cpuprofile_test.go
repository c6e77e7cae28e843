package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
)

// What Stop leaves is a profile of CPU time that pprof reads.
func TestProfileIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpu.pb.gz")
	var p cpuProfile
	if err := p.Start(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the file is there before its time: %v", err)
	}
	if err := new(cpuProfile).Start(filepath.Join(t.TempDir(), "second")); err == nil {
		t.Fatal("a second profile began beside the first")
	}
	name, err := p.Stop()
	if err != nil || name != path {
		t.Fatalf("wrote %q: %v, want %q", name, err, path)
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
	if name, err := p.Stop(); name != "" || err != nil {
		t.Fatalf("a second Stop wrote %q: %v", name, err)
	}
}

func TestStartNamesWhatCannotBeWritten(t *testing.T) {
	var p cpuProfile
	if err := p.Start(filepath.Join(t.TempDir(), "absent", "cpu.pb.gz")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v, want that the directory is missing", err)
	}
	if name, err := p.Stop(); name != "" || err != nil {
		t.Fatalf("wrote %q: %v", name, err)
	}
}
