package build

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/export"
	"github.com/simccl/simccl/units"
)

// TestStripedSplitsAreNCCLs compares chunk, steps and loop with what
// calcCollChunking (enqueue.cc:2030-2135), taken out of NCCL 2.28.9 and run on
// a host, gives for the same numbers.
func TestStripedSplitsAreNCCLs(t *testing.T) {
	for _, tc := range []struct {
		algo           coll.Algorithm
		bytes          int64
		channels       int
		perNode, heads int
		buffer, nvls   units.Bytes
		slow           bool
		chunk, loop    units.Bytes
		steps          int
	}{
		{coll.CollNetDirect, 8, 1, 8, 8, 4 << 20, 128 << 10, false, 32768, 262144, 1},
		{coll.CollNetDirect, 1 << 20, 4, 8, 8, 4 << 20, 128 << 10, false, 32768, 1048576, 1},
		{coll.CollNetDirect, 64 << 20, 16, 8, 8, 4 << 20, 128 << 10, false, 32768, 4194304, 16},
		{coll.CollNetDirect, 4 << 30, 16, 8, 8, 4 << 20, 128 << 10, false, 262144, 33554432, 128},
		{coll.CollNetDirect, 4 << 30, 2, 1, 1, 4 << 20, 128 << 10, false, 524288, 1048576, 4096},
		{coll.CollNetChain, 8, 1, 8, 8, 4 << 20, 128 << 10, false, 32768, 32768, 1},
		{coll.CollNetChain, 64 << 20, 16, 8, 8, 4 << 20, 128 << 10, false, 65536, 1048576, 64},
		{coll.CollNetChain, 16 << 30, 16, 8, 8, 8 << 20, 128 << 10, false, 262144, 4194304, 4096},
		{coll.NVLS, 8, 16, 8, 8, 4 << 20, 128 << 10, false, 16384, 2097152, 1},
		{coll.NVLS, 64 << 20, 16, 8, 8, 4 << 20, 128 << 10, false, 65536, 8388608, 8},
		{coll.NVLS, 1 << 30, 16, 8, 8, 4 << 20, 128 << 10, false, 131072, 16777216, 64},
		{coll.NVLS, 1 << 30, 16, 8, 8, 4 << 20, 128 << 10, true, 32768, 4194304, 256},
		{coll.NVLS, 16 << 30, 24, 4, 4, 4 << 20, 512 << 10, false, 524288, 50331648, 342},
	} {
		c := draw.Plain(tc.perNode, 2, tc.channels)
		c.BuffSizes[coll.Simple], c.NVLSChunkSize = tc.buffer, tc.nvls
		s, err := Split(c, plan.Request{Func: coll.AllReduce, Count: tc.bytes / 4, Type: coll.Float32,
			Algo: tc.algo, Proto: coll.Simple,
			Channels: tc.channels, Warps: 20, SlowNVLS: tc.slow})
		want := plan.Split{ChannelHi: tc.channels - 1, NChannels: tc.channels, ElemSize: 4, Striped: true,
			Lo: plan.Part{Count: tc.bytes / 4,
				ChunkSize: tc.chunk, SliceSize: tc.chunk, ChunkSteps: 1, SliceSteps: 1, NSteps: tc.steps,
				LoopSize: tc.loop}}
		if err != nil || s != want {
			t.Errorf("%v of %d bytes: %+v (%v), want %+v", tc.algo, tc.bytes, s, err, want)
		}
	}
}

// TestCollNetGroups: who does what with how many threads, as the kernels of
// 2.28.9 divide them (device/all_reduce.h, all_gather.h, reduce_scatter.h).
func TestCollNetGroups(t *testing.T) {
	for _, tc := range []struct {
		f       coll.Func
		algo    coll.Algorithm
		perNode int
		heads   int
		rank    int32
		want    string
	}{
		{coll.AllReduce, coll.CollNetDirect, 8, 8, 0,
			"gather 96/96, broadcast 128/96, scatter 128/96, reduce 288/256"},
		{coll.AllReduce, coll.CollNetDirect, 8, 4, 7, "gather 192/192, scatter 320/288"},
		{coll.AllReduce, coll.CollNetDirect, 4, 1, 0, "broadcast 224/192, reduce 384/352"},
		{coll.AllReduce, coll.CollNetDirect, 1, 1, 0, "broadcast 224/224, reduce 384/352"},
		{coll.AllGather, coll.CollNetDirect, 8, 8, 3, "send 128/96, broadcast 256/224, gather 256/256"},
		{coll.AllGather, coll.CollNetDirect, 1, 1, 0, "send 320/288, broadcast 320/288"},
		{coll.ReduceScatter, coll.CollNetDirect, 8, 8, 3, "scatter 256/224, reduce 256/224, recv 128/128"},
		{coll.ReduceScatter, coll.CollNetDirect, 1, 1, 0, "reduce 320/288, recv 320/320"},
		{coll.AllReduce, coll.CollNetChain, 8, 8, 0, "chain-reduce 384/352, chain-broadcast 256/224"},
		{coll.AllReduce, coll.NVLS, 8, 8, 0,
			"scatter 256/224, gather 224/224, reduce 96/64, broadcast 64/64"},
		{coll.AllReduce, coll.NVLS, 8, 4, 7, "scatter 256/224, gather 224/224"},
		{coll.AllReduce, coll.NVLS, 3, 1, 1, "scatter 224/192, gather 192/192"},
		{coll.AllGather, coll.NVLS, 8, 8, 0, "gather 256/256, send 192/160, broadcast 192/160"},
		{coll.ReduceScatter, coll.NVLS, 8, 8, 0, "recv 192/192, scatter 256/224, reduce 192/160"},
	} {
		c := draw.Plain(tc.perNode, 2, 1)
		draw.GiveCollNet(c, draw.UpTo(tc.heads))
		v := &c.NVLS[0]
		v.Heads = v.Heads[:tc.heads]
		for r := range v.HeadIndex {
			if int(v.HeadIndex[r]) >= tc.heads {
				v.HeadIndex[r] = -1
			}
		}
		p, err := Plan(c, plan.Request{Func: tc.f, Count: 1000, Type: coll.Float32, Algo: tc.algo,
			Proto: coll.Simple, Channels: 1, Warps: 20})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, pr := range p.Programs(tc.rank) {
			got = append(got, fmt.Sprintf("%v %d/%d", pr.Role, pr.Threads, pr.Workers))
		}
		if s := strings.Join(got, ", "); s != tc.want {
			t.Errorf("%v with %v, %d heads of %d ranks: %s; want %s", tc.f, tc.algo, tc.heads, tc.perNode, s,
				tc.want)
		}
	}
}

// TestCollNetPlansToLookAt writes small plans out.
func TestCollNetPlansToLookAt(t *testing.T) {
	for _, tc := range []struct {
		f     coll.Func
		algo  coll.Algorithm
		count int64
	}{
		{coll.AllReduce, coll.CollNetDirect, 20000},
		{coll.AllReduce, coll.CollNetChain, 20000},
		{coll.AllReduce, coll.NVLS, 20000},
		{coll.AllGather, coll.CollNetDirect, 6000},
		{coll.ReduceScatter, coll.NVLS, 3000},
	} {
		p, err := Plan(draw.Plain(2, 2, 2), plan.Request{Func: tc.f, Count: tc.count, Type: coll.Float32,
			Algo: tc.algo, Proto: coll.Simple, Channels: 2, Warps: 20})
		if err != nil {
			t.Fatal(err)
		}
		golden.Text(t, fmt.Sprintf("testdata/%v-%v.plan", tc.f.TestName(), tc.algo), text(t, p))
	}
}

// TestNetStepsCoverTheBlocks: the network takes every byte of every block
// once, and whole chunks in all-reduce, however little the data.
func TestNetStepsCoverTheBlocks(t *testing.T) {
	c := draw.Plain(2, 3, 10)
	p, err := Plan(c, plan.Request{Func: coll.AllReduce, Count: 2, Type: coll.Float32, Algo: coll.NVLS,
		Proto: coll.Simple, Channels: 10, Warps: 20})
	if err != nil {
		t.Fatal(err)
	}
	if groups := p.NetGroups(); len(groups) != 4 || len(groups[0].Channels) != 8 ||
		len(groups[3].Channels) != 2 {
		t.Errorf("10 channels of 2 heads are in groups %+v", groups)
	}
	if send, recv := p.NetBytes(0, 0, 0); send != 8*16384 || recv != send {
		t.Errorf("8 bytes make the network take %d and give %d, want 8 chunks of 16384", send, recv)
	}
	for _, f := range []coll.Func{coll.AllGather, coll.ReduceScatter} {
		p, err := Plan(c, plan.Request{Func: f, Count: 300001, Type: coll.Float32, Algo: coll.CollNetDirect,
			Proto: coll.Simple, Channels: 10, Warps: 20})
		if err != nil {
			t.Fatal(err)
		}
		own, all := make([]units.Bytes, 3), units.Bytes(0)
		for g := range p.NetGroups() {
			if p.NetGroups()[g].Ranks[0] != 0 {
				continue
			}
			for n := range int64(p.Split.Lo.NSteps) {
				for node := range own {
					send, recv := p.NetBytes(int32(g), int32(node), n)
					own[node] += min(send, recv)
					all += max(send, recv)
				}
			}
		}
		if block := units.Bytes(300001 * 4); own[0] != block || own[1] != block || own[2] != block ||
			all != 9*block {
			t.Errorf("%v: nodes' own bytes %v of %d, all %d", f, own, block, all)
		}
	}
}

// TestCollNetRefusals: what NCCL has no kernel for, or cannot do with such
// heads, is refused by type.
func TestCollNetRefusals(t *testing.T) {
	req := func(f coll.Func, a coll.Algorithm) plan.Request {
		return plan.Request{Func: f, Count: 1000, Type: coll.Float32, Algo: a, Proto: coll.Simple,
			Channels: 1, Warps: 20}
	}
	few := draw.Plain(4, 2, 1)
	draw.GiveCollNet(few, draw.UpTo(2))
	off := draw.Plain(4, 2, 1)
	off.CollNet = connect.CollNet{}
	lost := draw.Plain(4, 2, 1)
	lost.CollNet.NetHeads = [][]int32{{1, 0, 2, 3}, {4, 5, 6, 7}}
	for _, tc := range []struct {
		c    *connect.Layout
		r    plan.Request
		want string
	}{
		{off, req(coll.AllReduce, coll.CollNetChain), "has no CollNet"},
		{off, req(coll.AllReduce, coll.NVLS), "between nodes NVLS needs CollNet"},
		{draw.Plain(4, 2, 1), req(coll.AllGather, coll.CollNetChain), "only all_reduce"},
		{draw.Plain(4, 2, 1), req(coll.Broadcast, coll.CollNetDirect), "no rooted operations"},
		{draw.Plain(9, 2, 1), req(coll.AllReduce, coll.CollNetDirect), "9 ranks"},
		{few, req(coll.AllGather, coll.CollNetDirect), "every rank must reach the network"},
		{lost, req(coll.ReduceScatter, coll.CollNetDirect), "not the same head"},
	} {
		if _, err := Plan(tc.c, tc.r); !errors.Is(err, plan.ErrUnsupported) || !strings.Contains(err.Error(),
			tc.want) {
			t.Errorf("%v with %v: %v; want %q", tc.r.Func, tc.r.Algo, err, tc.want)
		}
	}
	var bad *plan.RequestError
	few12 := req(coll.AllReduce, coll.CollNetDirect)
	few12.Warps = 8
	for _, tc := range []struct {
		c *connect.Layout
		r plan.Request
	}{{lost, req(coll.AllReduce, coll.CollNetDirect)}, {draw.Plain(4, 2, 1), few12}} {
		if _, err := Plan(tc.c, tc.r); !errors.As(err, &bad) {
			t.Errorf("%v with %v and %d warps: %v; want a RequestError", tc.r.Func, tc.r.Algo, tc.r.Warps,
				err)
		}
	}
}

// text is a plan's text form.
func text(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := export.WriteText(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
