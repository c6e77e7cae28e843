package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/simccl/simccl/internal/fail"
	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/real"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
)

// TestRefusedConnectionIsTheNetworks: a peer that cannot be reached is the network's failure, no
// defect.
func TestRefusedConnectionIsTheNetworks(t *testing.T) {
	err := fmt.Errorf("read of 4096 bytes: %w", &net.OpError{Op: "dial", Net: "tcp",
		Err: syscall.ECONNREFUSED})
	if got := ExitStatus(err); got != StatusNCCL {
		t.Errorf("%v: exit status %d, want %d", err, got, StatusNCCL)
	}
	if got := ExitStatus(fmt.Errorf("an error without a type")); got != StatusInternal {
		t.Errorf("exit status %d, want %d", got, StatusInternal)
	}
}

// TestStatusOfFaults: every fault of hardware and of other ranks has the exit
// status of nccl-tests; none is a defect of ours.
func TestStatusOfFaults(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{team.Refuse("no such option"), StatusUsage},
		{fmt.Errorf("run: %w", &sim.BufferError{Switch: "leaf0", Ports: 2, Bytes: 1, Kept: 2}), StatusInput},
		{team.Input(errors.New("no such file")), StatusInput},
		{team.Wrong("element 3"), StatusCheck},
	} {
		if got := ExitStatus(fmt.Errorf("rank 0: %w", c.err)); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
	}
	for f := real.Argument; f <= real.Late; f++ {
		if statusOfFault[f] == StatusOK {
			t.Errorf("fault %d has no exit status", f)
		}
	}
}

// TestKinds: every kind of error has an exit status; several errors have that of
// the first.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, StatusOK}, {fail.Usage("no"), StatusUsage}, {fail.Input(errors.New("no")), StatusInput},
		{fail.Check("no"), StatusCheck},
		{fmt.Errorf("--model: %w", &fail.FileError{File: "config.json", Problem: "no"}), StatusInput},
		{fail.Unavailable(errors.New("no")), StatusAbsent}, {fail.NotYet("more", "this"),
			StatusNotImplemented},
		{fail.Join(nil, context.Canceled, fail.Usage("no")), StatusTimeout},
		{fail.Usage("%w", fail.Input(errors.New("no"))), StatusUsage},
		{fmt.Errorf("--vs: %w", &session.SizeError{Ranks: 2, GPUs: 1}), StatusUsage},
		{&streams.DeadlockError{Ranks: 2}, StatusTimeout}, {&fabric.LayoutError{Problem: "no"}, StatusUsage},
	} {
		if got := ExitStatus(c.err); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
	}
}
