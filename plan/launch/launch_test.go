package launch_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/plan/launch"
	"github.com/simccl/simccl/rules"
)

// comm is a communicator whose choice of algorithm is a function of the sizes alone.
func comm(c *connect.Layout) *launch.Comm {
	return &launch.Comm{Layout: c, Choose: func(o launch.Op) (launch.Choice, error) {
		bytes := o.Count * int64(o.Type.Size())
		out := launch.Choice{Algo: coll.Ring, Proto: coll.Simple, Channels: c.NChannels, Warps: 17}
		switch {
		case bytes < 1<<16:
			out.Proto, out.Channels, out.Warps = coll.LL, 1+int(bytes>>13), 8
			out.Channels = min(out.Channels, c.NChannels)
		case o.Func == coll.AllReduce && bytes < 1<<20:
			out.Algo, out.Proto, out.Warps = coll.Tree, coll.LL128, 20
		case o.Func == coll.AllReduce && bytes < 1<<22 && c.NNodes == 1 && o.RedOp == coll.Sum:
			out.Algo, out.Channels, out.Warps = coll.NVLS, c.NVLSChannels, 20
		}
		return out, nil
	}}
}

// calls draws a group: every call a collective, an all-to-all, a gather or a scatter, or
// a message with both of its ends.
func calls(t *rapid.T, n int) []launch.Call {
	types := []coll.DataType{coll.Int8, coll.Float32, coll.Float64, coll.BFloat16, coll.Int32}
	var out []launch.Call
	for range rapid.IntRange(1, 40).Draw(t, "calls") {
		c := launch.Call{Func: coll.Func(rapid.IntRange(0, int(coll.NumFuncs)).Draw(t, "func")),
			Type:  rapid.SampledFrom(types).Draw(t, "type"),
			Op:    coll.RedOp(rapid.IntRange(0, int(coll.NumRedOps)-1).Draw(t, "op")),
			Root:  int32(rapid.IntRange(0, n-1).Draw(t, "root")),
			Count: int64(1) << rapid.IntRange(0, 20).Draw(t, "log")}
		c.Count += rapid.Int64Range(0, c.Count).Draw(t, "more")
		if c.Func != coll.Send {
			out = append(out, c)
			continue
		}
		c.Rank, c.Peer = c.Root, int32(rapid.IntRange(0, n-1).Draw(t, "peer"))
		out = append(out, c)
		c.Func, c.Rank, c.Peer = coll.Recv, c.Peer, c.Rank
		out = append(out, c)
	}
	return out
}

// TestGroupsAreWhole: whatever a group holds, its kernels run every collective once with
// all of its elements on channels of the communicator, and every message once at either
// end; the same again the second time.
func TestGroupsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout := draw.Plain(rapid.IntRange(2, 5).Draw(t, "ranks"), rapid.IntRange(1, 2).Draw(t, "nodes"),
			1<<rapid.IntRange(0, 5).Draw(t, "channels"))
		c := comm(layout)
		list := calls(t, layout.NRanks)
		mode := launch.Mode(rapid.IntRange(0, 1).Draw(t, "mode"))
		kernels, err := launch.Plan(c, list, mode)
		if err != nil {
			t.Fatal(err)
		}
		again, err := launch.Plan(c, list, mode)
		if err != nil || !reflect.DeepEqual(kernels, again) {
			t.Fatalf("planned again: %v", err)
		}
		whole(t, layout, list, kernels)
		for i := range kernels {
			planned(t, c, &kernels[i])
		}
	})
}

// TestGroupsOfPieces: the same for groups of sends and receives of 2.21.5.
func TestGroupsOfPieces(t *testing.T) {
	old, err := rules.For("2.21.5")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		perNode := rapid.IntRange(2, 5).Draw(t, "ranks")
		layout := draw.Plain(perNode, rapid.IntRange(1, 2).Draw(t, "nodes"),
			1<<rapid.IntRange(0, 4).Draw(t, "channels"))
		layout.Rules, layout.MaxLocalRanks = old, perNode
		c := comm(layout)
		list := slices.DeleteFunc(calls(t, layout.NRanks), func(c launch.Call) bool {
			return c.Func.Valid() && !c.Func.IsP2P()
		})
		kernels, err := launch.Plan(c, list, launch.Eager)
		if err != nil {
			t.Fatal(err)
		}
		for i := range kernels {
			planned(t, c, &kernels[i])
		}
	})
}

// whole checks that kernels hold what a group calls.
func whole(t *rapid.T, c *connect.Layout, list []launch.Call, kernels []launch.Kernel) {
	times := make([]int, len(list))
	sent, taken := 0, 0
	messages := 0
	for i := range kernels {
		k := &kernels[i]
		for _, task := range k.Tasks {
			times[task.Call]++
			count, _ := task.Req.Elements()
			if s := task.Split; task.Req.Cut != nil && (task.Req.Cut.Count() != count || s.ChannelLo < 0 ||
				s.ChannelHi >= c.NChannels || s.NChannels != s.ChannelHi-s.ChannelLo+1) {
				t.Fatalf("call %d: %+v of %d elements on %d channels", task.Call, *task.Req.Cut, count,
					c.NChannels)
			}
		}
		messages = max(messages, len(k.Messages))
		for _, own := range k.Exchanges {
			for _, x := range own {
				if x.Send >= 0 {
					sent++
				}
				if x.Recv >= 0 {
					taken++
				}
			}
		}
		if most := (4<<10 - 32) / 16; len(k.Batches) > 0 && slices.Max(k.Batches) > most {
			t.Fatalf("kernel %d has %d batches; %d fit", i, slices.Max(k.Batches), most)
		}
	}
	single := len(list) == 1 && list[0].Func.IsP2P()
	for i, n := range times {
		if want := 1; list[i].Func.IsP2P() != (n == 0) || n > want {
			t.Fatalf("call %d, %v: %d times", i, list[i].Func, n)
		}
	}
	if !single && (sent != messages || taken != messages) {
		t.Fatalf("%d messages are sent %d times and received %d times", messages, sent, taken)
	}
}

// planned checks the plan of a kernel: each part is right by itself, and every connection
// of the whole has one end each way, on the rank and channel that it names.
func planned(t *rapid.T, c *launch.Comm, k *launch.Kernel) {
	p, err := k.Plan(c)
	if err != nil {
		var e *plan.UnsupportedError
		if errors.As(err, &e) && k.Exchanges != nil {
			return // a message's ends are in different kernels
		}
		t.Fatal(err)
	}
	if p.Members() == nil {
		return
	}
	for _, m := range p.Members() {
		if m.Task >= 0 && m.Plan.Req.Count < 1<<14 {
			if err := check.Plan(m.Plan); err != nil {
				t.Fatalf("call %d: %v", m.Task, err)
			}
		}
	}
	ends := make([][2]int, p.NumConns())
	var progs []plan.Program
	for r := range int32(p.Comm.NRanks) {
		progs = p.AppendPrograms(progs[:0], r)
		for i := range progs {
			pr := &progs[i]
			if pr.Rank != r || i > 0 && pr.Channel == progs[i-1].Channel && (pr.Phase < progs[i-1].Phase ||
				pr.Phase > progs[i-1].Phase+1 || pr.Group != progs[i-1].Group+1) {
				t.Fatalf("rank %d channel %d: program %d is of phase %d, group %d", r, pr.Channel, i,
					pr.Phase, pr.Group)
			}
			once(t, p, pr, ends)
		}
	}
	for id, e := range ends {
		if e[0] != e[1] {
			t.Fatalf("connection %d: %d steps sent, %d received", id, e[0], e[1])
		}
	}
}

// once counts what a program sends and receives on each connection.
func once(t *rapid.T, p *plan.Plan, pr *plan.Program, ends [][2]int) {
	cur := p.Open(pr)
	var op plan.Op
	n := int64(0)
	for cur.Next(&op) {
		n++
		for _, id := range op.To {
			ends[id][0]++
			if c := p.Conn(id); c.Src != pr.Rank || c.Channel != pr.Channel {
				t.Fatalf("rank %d sends on connection %d of rank %d", pr.Rank, id, c.Src)
			}
		}
		for _, id := range op.From {
			ends[id][1]++
			if c := p.Conn(id); c.Dst != pr.Rank || c.Channel != pr.Channel {
				t.Fatalf("rank %d receives on connection %d of rank %d", pr.Rank, id, c.Dst)
			}
		}
	}
	if n != p.NumOps(pr) {
		t.Fatalf("%d ops, NumOps says %d", n, p.NumOps(pr))
	}
}

// TestKernelsAreCut: a group of more works than a kernel's arguments name goes on in a
// second kernel, collectives first.
func TestKernelsAreCut(t *testing.T) {
	c := comm(draw.Plain(4, 1, 32))
	var list []launch.Call
	for i := range 12 {
		list = append(list, launch.Call{Func: coll.AllToAll, Type: coll.Float32, Count: 1 << 20},
			launch.Call{Func: coll.AllReduce, Type: coll.Float32, Count: int64(i + 1)})
	}
	kernels, err := launch.Plan(c, list, launch.Eager)
	if err != nil {
		t.Fatal(err)
	}
	if len(kernels) != 2 || len(kernels[0].Tasks) != 12 || len(kernels[1].Tasks) != 0 ||
		kernels[0].Exchanges == nil || kernels[1].Exchanges == nil {
		t.Fatalf("%d kernels, %d tasks in the first", len(kernels), len(kernels[0].Tasks))
	}
	for i := range kernels {
		if _, err := kernels[i].Plan(c); err != nil {
			t.Error(err)
		}
	}
}

// TestRefused: calls that contradict the group say which and why.
func TestRefused(t *testing.T) {
	c := comm(draw.Plain(4, 1, 8))
	send := launch.Call{Func: coll.Send, Type: coll.Int8, Count: 5, Rank: 1, Peer: 2}
	recv := launch.Call{Func: coll.Recv, Type: coll.Int8, Count: 5, Rank: 2, Peer: 1}
	short := recv
	short.Count = 4
	var unmatched *launch.UnmatchedError
	var bad *launch.CallError
	for _, x := range []struct {
		calls []launch.Call
		as    any
		text  string
	}{
		{[]launch.Call{send, send, recv}, &unmatched, "rank 1 sends 2 messages to rank 2, which receives " +
			"1: in a group planned by itself each send needs its receive"},
		{[]launch.Call{send, short}, &bad,
			"call 1 of the group: rank 2 receives 4 bytes of rank 1, which sends 5 (call 0)"},
		{[]launch.Call{{Func: coll.Broadcast, Type: coll.Int8, Count: 1, Root: 4}}, &bad,
			"call 0 of the group: root 4 is not a rank of 4; give 0 to 3"},
		{[]launch.Call{{Func: coll.Send, Type: coll.Int8, Peer: -1}}, &bad,
			"call 0 of the group: Send of rank 0 with rank -1: ranks are 0 to 3"},
		{[]launch.Call{{Func: 77, Type: coll.Int8}}, &bad, "call 0 of the group: 77 is no operation"},
		{[]launch.Call{{Func: coll.AllReduce, Type: coll.Int8, Count: -1}}, &bad,
			"call 0 of the group: -1 elements; give 0 to 281474976710656"},
	} {
		if _, err := launch.Plan(c, x.calls, launch.Eager); !errors.As(err, x.as) || err.Error() != x.text {
			t.Errorf("%v: %v", x.calls, err)
		}
	}
	old, err := rules.For("2.21.5")
	if err != nil {
		t.Fatal(err)
	}
	c.Layout.Rules = old
	var e *plan.UnsupportedError
	if _, err := launch.Plan(c, []launch.Call{send, recv, {Func: coll.AllReduce, Type: coll.Int8, Count: 1}},
		launch.Eager); !errors.As(err, &e) {
		t.Errorf("a group of NCCL 2.21.5: %v", err)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte{4, 1, 100, 7, 0, 2, 8, 50, 3, 1})
	f.Add([]byte{6, 6, 255, 2, 3, 9, 1, 0, 0, 0})
	c := comm(draw.Plain(4, 1, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		var list []launch.Call
		for ; len(data) >= 5 && len(list) < 64; data = data[5:] {
			list = append(list, launch.Call{Func: coll.Func(data[0] % 12), Type: coll.DataType(data[1] % 14),
				Op:    coll.RedOp(data[1] % 6),
				Count: int64(data[2]) << (data[3] % 40), Root: int32(data[4]%5) - 1, Rank: int32(data[4] % 5),
				Peer: int32(data[3] % 5)})
		}
		kernels, err := launch.Plan(c, list, launch.Mode(len(list)%2))
		if err != nil {
			return
		}
		for i := range kernels {
			if p, err := kernels[i].Plan(c); err == nil {
				p.TotalOps()
			}
		}
	})
}
