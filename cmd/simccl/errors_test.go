package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/simccl/simccl/internal/golden"
)

// A peer that cannot be reached is the network's failure, no defect.
func TestRefusedConnectionIsTheNetworks(t *testing.T) {
	err := fmt.Errorf("read of 4096 bytes: %w", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	if got := status(err); got != exitNCCL {
		t.Errorf("%v: exit status %d, want %d", err, got, exitNCCL)
	}
	if got := status(fmt.Errorf("an error without a type")); got != exitInternal {
		t.Errorf("exit status %d, want %d", got, exitInternal)
	}
}

// full is a standard output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// TestLostOutputIsAnError of every command, also where single lines are printed
// without a look, and is nobody's defect.
func TestLostOutputIsAnError(t *testing.T) {
	file := filepath.Join(golden.Root(t, "testdata", "topos"), "dgx-h100.xml")
	for _, args := range []string{"--help", "version", "env", "topo show " + file, "tune --topo " + file, "run all_reduce --sizes 8 -c 0"} {
		var errs bytes.Buffer
		code := run(t.Context(), strings.Fields(args), &app{out: full{}, err: &errs})
		if code != exitInternal || strings.Count(errs.String(), "no space left") != 1 || strings.Contains(errs.String(), "defect") {
			t.Errorf("%s: exit status %d, %q", args, code, errs.String())
		}
	}
}
