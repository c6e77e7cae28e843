package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// TestEveryPlanIsRight proves, for random communicators and operations, that
// the data arrives, once, and nothing hangs.
func TestEveryPlanIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := randomComm(t, shape{
			perNode:  rapid.IntRange(1, 8).Draw(t, "perNode"),
			nodes:    rapid.IntRange(1, 4).Draw(t, "nodes"),
			channels: rapid.IntRange(1, 6).Draw(t, "channels"),
		})
		r := randomRequest(t, c)
		p, err := Build(c, r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if err := Check(p); err != nil {
			t.Fatalf("%v %v/%v: %v", r.Func, r.Algo, r.Proto, err)
		}
		checkCounts(t, p)
	})
}

// checkCounts compares NumOps with the ops that come, and their numbering.
func checkCounts(t interface{ Fatalf(string, ...any) }, p *Plan) {
	var op Op
	for rank := range int32(p.Comm.NRanks) {
		for _, pr := range p.Programs(rank) {
			n := int64(0)
			for c := p.Open(&pr); c.Next(&op); n++ {
				if int64(op.Seq) != n {
					t.Fatalf("%v: op %d is numbered %d", pr, n, op.Seq)
				}
			}
			if got := p.NumOps(&pr); got != n {
				t.Fatalf("%v %v %+v: NumOps %d, but %d come", p.Req.Func, p.Req.Algo, pr, got, n)
			}
		}
	}
}

// plain is a communicator of equal nodes with rings and trees in rank order.
func plain(perNode, nodes, channels int) *connect.Comm {
	n := perNode * nodes
	c := &connect.Comm{
		NRanks: n, NNodes: nodes, NChannels: channels, CollChannels: channels,
		NVLSChannels: channels, NVLSChunkSize: 131072,
		P2PChannels: channels, P2PChannelsPerPeer: channels, P2PChunkSize: 131072,
		BuffSizes: [3]units.Bytes{524288, 4915200, 4194304},
		NodeRanks: make([][]int32, nodes),
	}
	ch := connect.Channel{Order: upTo(n)}
	v := connect.NVLSChannel{}
	for r := range int32(n) {
		node := r / int32(perNode)
		c.NodeOf = append(c.NodeOf, node)
		c.LocalRank = append(c.LocalRank, r%int32(perNode))
		c.NodeRanks[node] = append(c.NodeRanks[node], r)
		ch.Ring = append(ch.Ring, connect.RingLinks{Prev: (r + int32(n) - 1) % int32(n), Next: (r + 1) % int32(n)})
		down := func(m int32) int32 {
			if m < int32(n) {
				return m
			}
			return -1
		}
		t := connect.TreeLinks{Up: (r - 1) / 2, Down: [3]int32{down(2*r + 1), down(2*r + 2), -1}}
		if r == 0 {
			t.Up = -1
		}
		ch.Tree = append(ch.Tree, t)
		v.HeadIndex = append(v.HeadIndex, r%int32(perNode))
		up, kids := int32(-1), [3]int32{int32(n) + 1 + r%int32(perNode), -1, -1}
		if node > 0 {
			up = r - int32(perNode)
		}
		if node+1 < int32(nodes) {
			kids[1] = r + int32(perNode)
		}
		v.TreeUp, v.TreeDown = append(v.TreeUp, up), append(v.TreeDown, kids)
	}
	v.Heads = upTo(perNode)
	for range channels {
		c.Channels, c.NVLS = append(c.Channels, ch), append(c.NVLS, v)
	}
	c.RouteOf = func(src, dst int32, _ int, _ connect.RouteKind) connect.Route {
		if src == Network || dst == Network || c.NodeOf[src] != c.NodeOf[dst] {
			return connect.Route{Transport: connect.NET}
		}
		return connect.Route{Transport: connect.P2P}
	}
	giveCollNet(c, upTo(perNode))
	return c
}

// kernels lists every combination that NCCL has a kernel for.
func kernels(nodes int) []Request {
	var list []Request
	add := func(f coll.Func, a coll.Algorithm, protos ...coll.Protocol) {
		for _, pr := range protos {
			list = append(list, Request{Func: f, Algo: a, Proto: pr, Warps: 20})
		}
	}
	for f := range coll.Func(coll.NumCollFuncs) {
		add(f, coll.Ring, coll.LL, coll.LL128, coll.Simple)
	}
	add(coll.AllReduce, coll.Tree, coll.LL, coll.LL128, coll.Simple)
	add(coll.AllGather, coll.PAT, coll.Simple)
	add(coll.ReduceScatter, coll.PAT, coll.Simple)
	for _, a := range []coll.Algorithm{coll.NVLS, coll.CollNetDirect} {
		add(coll.AllReduce, a, coll.Simple)
		add(coll.AllGather, a, coll.Simple)
		add(coll.ReduceScatter, a, coll.Simple)
	}
	add(coll.AllReduce, coll.CollNetChain, coll.Simple)
	if nodes > 1 {
		add(coll.AllReduce, coll.NVLSTree, coll.Simple)
	}
	for f := coll.SendRecv; f < coll.NumFuncs; f++ {
		add(f, coll.Ring, coll.Simple)
	}
	return list
}

// TestEveryKernelAtAwkwardSizes walks all kernels over sizes around every
// boundary: none, fewer than ranks, odd, one chunk more or less.
func TestEveryKernelAtAwkwardSizes(t *testing.T) {
	counts := []int64{0, 1, 2, 7, 255, 1000, 65537, 1 << 20}
	shapes := [][3]int{{1, 1, 1}, {2, 1, 2}, {3, 1, 4}, {8, 1, 8}, {1, 5, 1}, {4, 2, 4}, {2, 8, 2}}
	plans, ops := 0, int64(0)
	for _, s := range shapes {
		c := plain(s[0], s[1], s[2])
		for _, r := range kernels(s[1]) {
			for i, count := range counts {
				r.Count, r.Channels, r.InPlace = count, s[2], i%2 == 1
				r.Type = []coll.DataType{coll.Float32, coll.Int8, coll.Float64, coll.BFloat16}[i%4]
				r.Root = int32(i % c.NRanks)
				if testing.Short() && count > 70000 {
					continue
				}
				p, err := Build(c, r)
				if err == nil {
					err = Check(p)
				}
				if err != nil {
					t.Fatalf("%v ranks, %v %v/%v count %d %v: %v", s, r.Func, r.Algo, r.Proto, count, r.Type, err)
				}
				checkCounts(t, p)
				plans++
				ops += p.TotalOps()
			}
		}
	}
	t.Logf("%d plans of %d ops proven", plans, ops)
}

// TestPATAtEverySize: the aggregation of PAT depends on both ranks and size.
func TestPATAtEverySize(t *testing.T) {
	most := 70
	if testing.Short() {
		most = 20
	}
	for n := 2; n <= most; n++ {
		c := plain(1, n, 1)
		for _, f := range []coll.Func{coll.AllGather, coll.ReduceScatter} {
			for _, count := range []int64{1, 100, 4096, 65536, 300001} {
				for _, inPlace := range []bool{false, true} {
					p, err := Build(c, Request{Func: f, Algo: coll.PAT, Proto: coll.Simple, Count: count, Type: coll.Float32, Channels: 1, Warps: 16, InPlace: inPlace})
					if err == nil {
						err = Check(p)
					}
					if err != nil {
						t.Fatalf("%v over %d ranks, %d elements: %v", f, n, count, err)
					}
				}
			}
		}
	}
}

// TestAllMachinesPlansAreRight proves plans on NCCL's own rings and trees, as
// chosen by NCCL.
func TestAllMachinesPlansAreRight(t *testing.T) {
	plans, ops := 0, int64(0)
	for i, path := range goldenFiles(t) {
		d := readGolden(t, path)
		if i%16 != 0 || d.NRanks < 2 || d.NRanks > 32 {
			continue
		}
		c := d.comm()
		for j := range d.Selection {
			g := &d.Selection[j]
			if g.Error != 0 || g.Size > 1<<22 || (testing.Short() && j%8 != 0) {
				continue
			}
			p, err := Build(c, g.request(t))
			if err == nil {
				err = Check(p)
			}
			if err != nil {
				t.Fatalf("%s: %s %d %s/%s: %v", path, g.Func, g.Size, g.Algo, g.Proto, err)
			}
			plans++
			ops += p.TotalOps()
		}
	}
	t.Logf("%d plans of %d ops proven", plans, ops)
}

// mutation damages a listing at op k of program i and says what Check must
// complain of.
type mutation struct {
	name string
	does func(l *Listing, i, k int) bool // false: does not apply here
	want []string                        // any of these words
}

var mutations = []mutation{
	{"drop an op", func(l *Listing, i, k int) bool {
		ops := l.Programs[i].Ops
		l.Programs[i].Ops = append(ops[:k:k], ops[k+1:]...)
		return true
	}, nil},
	{"send to another rank", func(l *Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		for _, c := range l.Conns {
			if len(op.To) > 0 && c.Src >= 0 && c.Src != op.Rank {
				op.To[0] = c.ID
				return true
			}
		}
		return false
	}, []string{"sends on connection"}},
	{"receive from another connection", func(l *Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		for _, c := range l.Conns {
			if len(op.From) > 0 && c.Src >= 0 && c.ID != op.From[0] {
				op.From[0] = c.ID
				return true
			}
		}
		return false
	}, nil},
	{"write one element off", func(l *Listing, i, k int) bool {
		l.Programs[i].Ops[k].Dst.Off += 4
		return l.Programs[i].Ops[k].Do&Copy != 0 && l.Programs[i].Ops[k].Bytes > 0
	}, nil},
	{"read one element off", func(l *Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		op.Src.Off += 4
		return op.Src.Buf != NoBuffer && op.Bytes > 0
	}, nil},
	{"write before the buffer", func(l *Listing, i, k int) bool {
		l.Programs[i].Ops[k].Dst.Off = -4
		return l.Programs[i].Ops[k].Do&Copy != 0 && l.Programs[i].Ops[k].Bytes > 0
	}, []string{"touches"}},
	{"send fewer bytes", func(l *Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		op.Bytes -= 4
		return op.Bytes >= 0 && op.Do&(Send|Recv) != 0
	}, nil},
	{"do not reduce", func(l *Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		had := op.Do&Reduce != 0 && op.Bytes > 0
		op.Do &^= Reduce
		return had && (op.Src.Buf != NoBuffer || len(op.From) > 1)
	}, []string{"several operands"}},
	{"add the own part twice", func(l *Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		if op.Do&(Recv|Reduce|Copy) != Recv|Copy || op.Bytes == 0 {
			return false
		}
		op.Do |= Reduce
		op.Src = Ref{Input, op.Dst.Off}
		return true
	}, nil},
	{"swap two ops", func(l *Listing, i, k int) bool {
		ops := l.Programs[i].Ops
		if k+1 >= len(ops) || ops[k].Src == ops[k+1].Src && ops[k].Dst == ops[k+1].Dst ||
			!(meets(ops[k].From, ops[k+1].From) || meets(ops[k].To, ops[k+1].To)) {
			return false
		}
		ops[k], ops[k+1] = ops[k+1], ops[k]
		return true
	}, nil},
	{"write the input", func(l *Listing, i, k int) bool {
		l.Programs[i].Ops[k].Dst.Buf = Input
		return l.Programs[i].Ops[k].Do&Copy != 0
	}, []string{"writes its input"}},
	{"repeat an op", func(l *Listing, i, k int) bool {
		ops := l.Programs[i].Ops
		l.Programs[i].Ops = append(ops[:k+1:k+1], ops[k:]...)
		return ops[k].Do&(Send|Recv) != 0
	}, nil},
	{"scale too early", func(l *Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		had := op.Do&(Send|PostOp) == Send && op.Do&Recv == 0 && op.Bytes > 0 && op.Src.Buf == Input
		op.Do |= PostOp
		return had
	}, []string{"not complete"}},
}

// meets tells whether two ops share a connection.
func meets(a, b []int32) bool {
	return slices.ContainsFunc(a, func(x int32) bool { return slices.Contains(b, x) })
}

// TestCheckSeesEveryFault damages right plans in every way and place.
func TestCheckSeesEveryFault(t *testing.T) {
	seen := map[string]int{}
	for _, s := range [][3]int{{4, 1, 2}, {2, 2, 2}} {
		c := plain(s[0], s[1], s[2])
		for _, r := range kernels(s[1]) {
			r.Count, r.Type, r.Channels = 20000, coll.Float32, s[2]
			p, err := Build(c, r)
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(p.With(List(p))); err != nil {
				t.Fatalf("listed %v %v/%v: %v", r.Func, r.Algo, r.Proto, err)
			}
			for _, m := range mutations {
				for i, lp := range List(p).Programs {
					for k := 0; k < len(lp.Ops); k += 1 + len(lp.Ops)/4 {
						l := List(p)
						if !m.does(l, i, k) {
							continue
						}
						name := fmt.Sprintf("%v %v/%v: %s, program %d op %d", r.Func, r.Algo, r.Proto, m.name, i, k)
						seen[m.name]++
						requireFault(t, name, Check(p.With(l)), m.want)
					}
				}
			}
		}
	}
	for _, m := range mutations {
		if seen[m.name] == 0 {
			t.Errorf("%q was never tried", m.name)
		}
	}
	t.Log(seen)
}

func requireFault(t *testing.T, name string, err error, want []string) {
	t.Helper()
	var fault *CheckError
	if !errors.As(err, &fault) {
		t.Errorf("%s: not seen (%v)", name, err)
		return
	}
	for _, w := range want {
		if strings.Contains(err.Error(), w) {
			return
		}
	}
	if len(want) > 0 {
		t.Errorf("%s: %v; want one of %q", name, err, want)
	}
}

// TestCheckSeesDeadlock: two ranks that both receive first.
func TestCheckSeesDeadlock(t *testing.T) {
	c := plain(2, 1, 1)
	p, err := Build(c, Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple, Count: 1000, Type: coll.Float32, Channels: 1, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	l := List(p)
	for i := range l.Programs {
		ops := l.Programs[i].Ops
		ops[0], ops[2] = ops[2], ops[0]
	}
	if err := Check(p.With(l)); err == nil || !strings.Contains(err.Error(), "deadlock") {
		t.Fatalf("got %v, want a deadlock", err)
	}
}
