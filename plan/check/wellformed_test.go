package check

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/export"
)

// TestOpsAreWellFormed: an op that could not run anywhere is refused for what is wrong with it, and not for
// what follows of it; one at the bound is not.
func TestOpsAreWellFormed(t *testing.T) {
	l := draw.Plain(4, 1, 1)
	p, err := build.Plan(l, plan.Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple,
		Count: 4000, Type: coll.Float32, Channels: 1, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	const bytes = 4 * 4000
	for _, c := range []struct {
		name string
		does func(op *plan.Op)
		want string // with "!" it is refused, if at all, for another reason
	}{
		{"rank", func(op *plan.Op) { op.Rank++ }, "belongs to rank 1 channel 0 group 0"},
		{"channel", func(op *plan.Op) { op.Channel++ }, "belongs to rank 0 channel 1 group 0"},
		{"group", func(op *plan.Op) { op.Group++ }, "belongs to rank 0 channel 0 group 1"},
		{"no receive", func(op *plan.Op) { op.Do &^= plan.Recv }, "but 1 connections to receive and 1"},
		{"no send", func(op *plan.Op) { op.Do &^= plan.Send }, "but 1 connections to receive and 1"},
		{"nothing to receive", func(op *plan.Op) { op.From = nil }, "but 0 connections to receive and 1"},
		{"nothing to send", func(op *plan.Op) { op.To = nil }, "but 1 connections to receive and 0"},
		{"nowhere to copy", func(op *plan.Op) { op.Dst.Buf = plan.NoBuffer }, "with destination"},
		{"a copy without one", func(op *plan.Op) { op.Do &^= plan.Copy }, "with destination"},
		{"its input", func(op *plan.Op) { op.Dst.Buf = plan.Input }, "writes its input"},
		{"less than nothing", func(op *plan.Op) { op.Bytes = -1 }, "negative size or steps out of reach"},
		{"nothing", func(op *plan.Op) { op.Bytes = 0 }, "!negative size or steps out of reach"},
		{"receives before", func(op *plan.Op) { op.RecvAhead = -1 }, "steps out of reach"},
		{"receives in the last step", func(op *plan.Op) { op.RecvAhead = plan.FIFOSteps - 1 },
			"!out of reach"},
		{"receives too late", func(op *plan.Op) { op.RecvAhead = plan.FIFOSteps }, "steps out of reach"},
		{"sends before", func(op *plan.Op) { op.SendAhead = -1 }, "steps out of reach"},
		{"sends in the last step", func(op *plan.Op) { op.SendAhead = plan.FIFOSteps - 1 }, "!out of reach"},
		{"sends too late", func(op *plan.Op) { op.SendAhead = plan.FIFOSteps }, "steps out of reach"},
		{"reads before the buffer", func(op *plan.Op) { op.Src.Off = -1 }, "of a buffer of 16000"},
		{"reads the end", func(op *plan.Op) { op.Src.Off = bytes - op.Bytes }, "!touches"},
		{"reads behind it", func(op *plan.Op) { op.Src.Off = bytes - op.Bytes + 1 }, "of a buffer of 16000"},
		{"writes the end", func(op *plan.Op) { op.Dst.Off = bytes - op.Bytes }, "!touches"},
		{"writes behind it", func(op *plan.Op) { op.Dst.Off = bytes - op.Bytes + 1 }, "of a buffer of 16000"},
		{"more than a buffer", func(op *plan.Op) { op.Bytes, op.Dst.Off = bytes+1, 0 },
			"of a buffer of 16000"},
		{"no such connection", func(op *plan.Op) { op.To = []int32{99} }, "connection 99 does not exist"},
	} {
		list := export.List(p)
		ops := list.Programs[0].Ops
		const all = plan.Recv | plan.Reduce | plan.Copy | plan.Send
		at := -1
		for i := range ops {
			if ops[i].Do&all == all {
				at = i
			}
		}
		c.does(&ops[at])
		err := proveListed(t, p, list)
		if want, never := strings.CutPrefix(c.want, "!"); err == nil && !never {
			t.Errorf("%s: not seen", c.name)
		} else if err != nil && strings.Contains(err.Error(), want) == never {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}
