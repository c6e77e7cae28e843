package main

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSystemsAreCheckedBeforeAnythingIsWritten: a name that is none leaves no folder
// and no document.
func TestSystemsAreCheckedBeforeAnythingIsWritten(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	out := filepath.Join(t.TempDir(), "dist")
	r := &release{version: "0.0.1", out: out}
	if err := r.run("linux/amd64,plan9/mips"); err == nil || !strings.Contains(err.Error(),
		`"plan9/mips" is none of`) {
		t.Errorf("a system that is none: %v", err)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("%s was made: %v", out, err)
	}
	if list, err := choose("linux/amd64,linux/amd64"); err != nil || len(list) != 1 {
		t.Errorf("twice the same: %v, %v", list, err)
	}
	if list, err := choose(""); err != nil || len(list) != len(targets) {
		t.Errorf("all: %v, %v", list, err)
	}
}

// TestWheelRecordsItsFiles: a wheel has the program, executable, where the package looks for it, a tag of the
// system, and a record of every file's hash and length, but its own.
func TestWheelRecordsItsFiles(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	for _, v := range [][2]string{{"0.1.0", "0.1.0"}, {"0.1.0-dev", "0.1.0.dev0"},
		{"0.2.0-rc.1", "0.2.0rc1"}} {
		if got := pythonVersion(v[0]); got != v[1] {
			t.Errorf("%s is %s for Python, want %s", v[0], got, v[1])
		}
	}
	r := &release{version: "0.2.0-rc.1", out: t.TempDir(), date: time.Unix(1e9, 0)}
	if err := r.wheel(target{"linux", "arm64"}, "simccl", []byte("program")); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(filepath.Join(r.out, "simccl-0.2.0rc1-py3-none-manylinux2014_aarch64.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	record, err := fs.ReadFile(z, "simccl-0.2.0rc1.dist-info/RECORD")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		data, err := fs.ReadFile(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s,sha256=%s,%d\n", f.Name, digest(data), len(data))
		if strings.HasSuffix(f.Name, "/RECORD") {
			line = f.Name + ",,\n"
		}
		if !strings.Contains(string(record), line) {
			t.Errorf("RECORD has no line %q", line)
		}
	}
	if info, err := fs.Stat(z, "simccl/bin/simccl"); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program: %v, %v", info, err)
	}
}
