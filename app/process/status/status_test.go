package status

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
	if got := Of(err); got != NCCL {
		t.Errorf("%v: exit status %d, want %d", err, got, NCCL)
	}
	if got := Of(fmt.Errorf("an error without a type")); got != Internal {
		t.Errorf("exit status %d, want %d", got, Internal)
	}
}

// TestStatusOfFaults: every fault of hardware and of other ranks has the exit
// status of nccl-tests; none is a defect of ours.
func TestStatusOfFaults(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{team.Refuse("no such option"), Usage},
		{fmt.Errorf("run: %w", &sim.BufferError{Switch: "leaf0", Ports: 2, Bytes: 1, Kept: 2}), Input},
		{team.Input(errors.New("no such file")), Input},
		{team.Wrong("element 3"), Check},
	} {
		if got := Of(fmt.Errorf("rank 0: %w", c.err)); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
	}
	for f := real.Argument; f <= real.Late; f++ {
		if faults[f] == OK {
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
		{nil, OK}, {fail.Usage("no"), Usage}, {fail.Input(errors.New("no")), Input},
		{fail.Check("no"), Check},
		{fail.Unavailable(errors.New("no")), Absent}, {fail.NotYet("more", "this"), NotImplemented},
		{fail.Join(nil, context.Canceled, fail.Usage("no")), Timeout},
		{fail.Usage("%w", fail.Input(errors.New("no"))), Usage},
		{fmt.Errorf("--vs: %w", &session.SizeError{Ranks: 2, GPUs: 1}), Usage},
		{&streams.DeadlockError{Ranks: 2}, Timeout}, {&fabric.LayoutError{Problem: "no"}, Usage},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("%v: exit status %d, want %d", c.err, got, c.want)
		}
	}
}
