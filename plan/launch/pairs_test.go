package launch_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/launch"
)

// doing is what a program does, apart from where buffers and connections are.
type doing struct {
	role                           plan.Role
	channel, phase, group, threads int32
	proto                          coll.Protocol
	bytes, chunk                   int64
}

// doings lists what a rank's programs do.
func doings(p *plan.Plan, rank int32) (out []doing) {
	for _, pr := range p.Programs(rank) {
		out = append(out, doing{pr.Role, pr.Channel, pr.Phase, pr.Group, pr.Threads, pr.Proto,
			int64(pr.Transfer.Bytes), int64(pr.Transfer.Chunk)})
	}
	return out
}

// TestUnequalAlltoallIsItsGroup: an alltoall of counts by pair does what the group of its
// sends and receives does, empty ones too, which another part of the program lays out call
// by call.
func TestUnequalAlltoallIsItsGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := draw.Plain(rapid.IntRange(2, 4).Draw(t, "ranks"), rapid.IntRange(1, 2).Draw(t, "nodes"),
			8)
		x := draw.Pairs(t, layout.NRanks, 1<<rapid.IntRange(1, 20).Draw(t, "magnitude"))
		if x.Count() == 0 {
			return
		}
		var calls []launch.Call
		for src := range int32(layout.NRanks) {
			for dst := range int32(layout.NRanks) {
				c := launch.Call{Func: coll.Send, Type: coll.Float32, Count: x.At(src, dst), Rank: src,
					Peer: dst}
				calls = append(calls, c)
				c.Func, c.Rank, c.Peer = coll.Recv, dst, src
				calls = append(calls, c)
			}
		}
		c := comm(layout)
		kernels, err := launch.Plan(c, calls, launch.Eager)
		if err != nil || len(kernels) != 1 {
			t.Fatalf("%d kernels, %v", len(kernels), err)
		}
		group, err := kernels[0].Plan(c)
		if err != nil {
			t.Fatal(err)
		}
		one, err := build.Plan(layout, plan.Request{Func: coll.AllToAll, Type: coll.Float32, Count: x.Count(),
			Pairs: x})
		if err != nil {
			t.Fatal(err)
		}
		for rank := range int32(layout.NRanks) {
			if a, b := doings(one, rank), doings(group, rank); !slices.Equal(a, b) {
				t.Fatalf("rank %d does\n%+v\nits group\n%+v", rank, a, b)
			}
		}
	})
}
