package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/dev/golden"
)

// full is a standard output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// TestLostOutputIsAnError of every command, also where single lines are printed
// without a check, and is not a bug.
func TestLostOutputIsAnError(t *testing.T) {
	file := filepath.Join(golden.Root(t, "testdata", "topos"), "dgx-h100.xml")
	for _, args := range []string{"--help", "version", "env", "topo show " + file, "tune --topo " + file,
		"run all_reduce --sizes 8 -c 0"} {
		var errs bytes.Buffer
		code := run(t.Context(), strings.Fields(args), appOf(process.Process{Out: full{}, Err: &errs}))
		if code != cli.StatusInternal || strings.Count(errs.String(), "no space left") != 1 ||
			strings.Contains(errs.String(), "defect") {
			t.Errorf("%s: exit status %d, %q", args, code, errs.String())
		}
	}
}

// TestFilesAreWholeOrNotThere: a directory without room for a file keeps what it
// had, and a command that is broken off says so.
func TestFilesAreWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	for name, opt := range map[string]string{"t.json": "--trace", "t.pb.gz": "--profile", "t.csv": "--ops",
		"t.html": "--report"} {
		file := filepath.Join(dir, name)
		if err := os.Symlink("/dev/full", file); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"run", "all_reduce", "--sizes", "64K", "-c", "0", "-g", "1", opt,
			file}, appOf(process.Process{Out: &out, Err: &errs}))
		if code != cli.StatusInternal || strings.Count(errs.String(), "no space left") != 1 {
			t.Errorf("%s: exit status %d, %q", opt, code, errs.String())
		}
		if to, err := os.Readlink(file); err != nil || to != "/dev/full" {
			t.Errorf("%s: the device was replaced: %q %v", opt, to, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 4 {
		t.Errorf("left behind: %v %v", list, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"run", "all_reduce", "--sizes", "64K", "-c", "0"},
		appOf(process.Process{Out: &out, Err: &errs})); code != 130 ||
		errs.String() != "simccl: interrupted\n" {
		t.Errorf("exit status %d, %q", code, errs.String())
	}
}

// TestBuffersTooSmallAreInput: a switch whose ports need more than its buffer is the fabric file's
// fault, no defect.
func TestBuffersTooSmallAreInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net.json")
	net := `{"packets": {"buffer_kb": 64, "hop_us": 2}, "switches": [{"name": "s"}], "cables": [{"a": "node0/0", "b": "s", "gbit": 200}, {"a": "node1/0", "b": "s", "gbit": 200}]}`
	if err := os.WriteFile(file, []byte(net), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"packet", "hybrid"} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"run", "sendrecv", "--topo", "pcie-a100-4", "--nodes", "2", "-g",
			"1", "--sizes", "64K", "--fabric", file, "--network", network},
			appOf(process.Process{Out: &out, Err: &errs}))
		if code != cli.StatusInput || !strings.Contains(errs.String(), "write more than that") ||
			strings.Contains(errs.String(), "defect") {
			t.Errorf("%s: exit status %d, %q", network, code, errs.String())
		}
	}
}
