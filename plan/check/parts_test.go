package check

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/export"
)

// Every right plan is proved by its parts, too.
func TestRightPlansAreProvedByParts(t *testing.T) {
	proved := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := draw.Layout(t, draw.Shape{
			PerNode:  rapid.IntRange(1, 4).Draw(t, "perNode"),
			Nodes:    rapid.IntRange(1, 3).Draw(t, "nodes"),
			Channels: rapid.IntRange(1, 4).Draw(t, "channels"),
		})
		r := draw.Request(t, c)
		if r.Algo == coll.Ring || r.Algo == coll.Tree {
			r.Count = rapid.Int64Range(1<<12, 1<<20).Draw(t, "large")
		}
		p, err := build.Plan(c, r)
		if err != nil || p.Req.Count == 0 || c.NRanks < 2 || p.OneRank() != plan.NotOneRank {
			return
		}
		what := fmt.Sprintf("%v %v/%v of %d on %d ranks, in place %v", r.Func, r.Algo, r.Proto, r.Count,
			c.NRanks, r.InPlace)
		switch {
		case p.Turns() > 0:
			proved["turns"]++
			for _, ranks := range [...][]int32{drawnWithin(p, mostTurned), allRanks(p)} {
				if err := ofRing(p, ranks); err != nil {
					t.Fatalf("%s, %d ranks: %v", what, len(ranks), err)
				}
			}
		case isChain(p):
			proved["chains"]++
			for _, ranks := range [...][]int32{drawnWithin(p, mostTurned), allRanks(p)} {
				if err := ofChain(p, ranks); err != nil {
					t.Fatalf("%s, %d ranks: %v", what, len(ranks), err)
				}
			}
		case p.Req.Func.IsP2P():
			if missing, err := ofTransfers(p); err != nil {
				t.Fatalf("%s: %v", what, err)
			} else if missing == "" {
				proved["transfers"]++
			}
		}
		if p.ConnsPerRank() == 0 || p.Split.Striped || len(p.NetGroups()) > 0 {
			return
		}
		short, err := fewIterations(p, drawn(c.NRanks))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if short != p {
			proved["iterations"]++
		}
		if err := Plan(short); err != nil {
			t.Fatalf("%s, shortened: %v", what, err)
		}
		proved["channels"]++
		for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
			if err := proveChannel(p, int32(ch)); err != nil {
				t.Fatalf("%s, channel %d: %v", what, ch, err)
			}
		}
	})
	t.Log(proved)
	for _, how := range []string{"turns", "chains", "transfers", "iterations", "channels"} {
		if proved[how] == 0 && !testing.Short() {
			t.Errorf("no plan was proved by its %s", how)
		}
	}
}

// What is wrong with a ring or a chain on a rank that is looked at is seen.
func TestTurnsShowEveryFault(t *testing.T) {
	seen, chains := map[string]int{}, 0
	c := draw.Plain(2, 2, 2)
	for _, r := range draw.Kernels(2) {
		r.Count, r.Type, r.Channels = 20000, coll.Float32, 2
		p, err := build.Plan(c, r)
		if err != nil {
			t.Fatal(err)
		}
		proof := ofRing
		switch {
		case isChain(p):
			proof = ofChain
			chains++
		case p.Turns() == 0:
			continue
		}
		right, err := export.List(p).Plan(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := proof(right, allRanks(right)); err != nil {
			t.Fatalf("%v %v: %v", r.Func, r.Proto, err)
		}
		for _, m := range mutations {
			for i, lp := range export.List(p).Programs {
				for k := 0; k < len(lp.Ops); k += 1 + len(lp.Ops)/4 {
					l := export.List(p)
					if !m.does(l, i, k) {
						continue
					}
					q, err := l.Plan(p)
					if err != nil {
						t.Fatal(err)
					}
					seen[m.name]++
					requireFault(t, fmt.Sprintf("%v %v: %s, program %d op %d", r.Func, r.Proto, m.name, i, k),
						proof(q, allRanks(q)), nil)
				}
			}
		}
	}
	if chains < 2 {
		t.Errorf("%d plans of chains were tried", chains)
	}
	if len(seen) < len(mutations)-1 {
		t.Errorf("of %d faults only these were tried: %v", len(mutations), seen)
	}
}

// A plan of a size or a place of its own is seen where its iterations should be equal.
func TestIterationsThatDifferAreSeen(t *testing.T) {
	c := draw.Plain(2, 2, 1)
	p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Algo: coll.Tree, Proto: coll.Simple,
		Count: 4 << 20, Type: coll.Float32, Channels: 1, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	if p.Iterations() < fewIterated {
		t.Fatalf("%d iterations", p.Iterations())
	}
	short, err := p.Smaller(keptIterations)
	if err != nil || short == nil {
		t.Fatal(err)
	}
	// connections have other numbers in a listing
	if short, err = export.List(short).Plan(short); err != nil {
		t.Fatal(err)
	}
	holds := func(l *export.Listing, i int) bool {
		q, err := l.Plan(p)
		if err != nil {
			t.Fatal(err)
		}
		rank := l.Programs[i].Program.Rank
		for k, pr := range q.Programs(rank) {
			x := repetition{p: q, rank: rank, left: p.Iterations() - keptIterations}
			if !x.holds(short, &pr, &short.Programs(rank)[k]) {
				return false
			}
		}
		return true
	}
	for i := range export.List(p).Programs {
		if !holds(export.List(p), i) {
			t.Fatalf("program %d is not taken for equal iterations", i)
		}
		n := len(export.List(p).Programs[i].Ops)
		for _, k := range []int{0, 1, n / 2, n - 2, n - 1} {
			for name, does := range map[string]func(op *plan.Op){
				"place": func(op *plan.Op) { op.Src.Off += 16; op.Dst.Off += 32 },
				"size":  func(op *plan.Op) { op.Bytes-- },
				"deed":  func(op *plan.Op) { op.Do ^= plan.PostOp },
			} {
				l := export.List(p)
				op := &l.Programs[i].Ops[k]
				if does(op); name == "place" && op.Src.Buf == plan.NoBuffer && op.Dst.Buf == plan.NoBuffer {
					continue
				}
				if holds(l, i) {
					t.Errorf("program %d: another %s of op %d of %d is not seen", i, name, k, n)
				}
			}
		}
	}
}

// altered is a plan with other programs.
type altered struct {
	*plan.Plan
	change func([]plan.Program) []plan.Program
}

func (a altered) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	return append(dst, a.change(a.Programs(rank))...)
}
func (a altered) Open(pr *plan.Program, _ plan.Stream) plan.Stream {
	return a.Plan.Open(pr)
}
func (a altered) NumConns() int64   { return int64(a.Plan.NumConns()) }
func (a altered) Conn(c *plan.Conn) { *c = a.Plan.Conn(c.ID) }

// Sends and receives that miss or go astray are seen.
func TestTransfersShowEveryFault(t *testing.T) {
	faults := map[string]func(list []plan.Program, i int) []plan.Program{
		"place": func(list []plan.Program, i int) []plan.Program { list[i].Transfer.Off += 4; return list },
		"size": func(list []plan.Program, i int) []plan.Program {
			list[i].Transfer.Bytes -= 4
			return list
		},
		"missing": func(list []plan.Program, i int) []plan.Program {
			return append(list[:i:i], list[i+1:]...)
		},
		"twice": func(list []plan.Program, i int) []plan.Program { return append(list, list[i]) },
	}
	for _, f := range []coll.Func{coll.AllToAll, coll.Gather, coll.Scatter, coll.SendRecv} {
		c := draw.Plain(2, 2, 2)
		p, err := build.Plan(c, plan.Request{Func: f, Count: 5000, Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		if missing, err := ofTransfers(p); missing != "" || err != nil {
			t.Fatalf("%v: %s %v", f, missing, err)
		}
		rooted := f == coll.Gather || f == coll.Scatter
		if rootedTransfers(p) != rooted {
			t.Fatalf("%v: proved with its end: %t", f, !rooted)
		}
		for rank := range int32(c.NRanks) {
			for i := range p.Programs(rank) {
				for name, does := range faults {
					q, err := plan.New(p.Comm, p.Req, p.Split,
						altered{p, func(list []plan.Program) []plan.Program {
							if len(list) > i && list[i].Rank == rank {
								return does(list, i)
							}
							return list
						}})
					if err != nil {
						t.Fatal(err)
					}
					if _, err := ofTransfers(q); err == nil || rootedTransfers(q) {
						t.Errorf("%v, rank %d: another %s of program %d is not seen", f, rank, name, i)
					}
				}
			}
		}
	}
}

// TestTransfersAreLookedAtWithinABudget: all ranks are where that takes at most maxTransfers programs, of
// more ranks as many as that allows, drawn by a hash, and at least six.
func TestTransfersAreLookedAtWithinABudget(t *testing.T) {
	for _, nodes := range []int{4, 64} {
		p, err := build.Plan(draw.Plain(nodes, 8, 2), plan.Request{Func: coll.AllToAll, Count: 1 << 16,
			Type: coll.Float32})
		if err != nil {
			t.Fatal(err)
		}
		x := newTransfers(p)
		if err := x.prove(); err != nil {
			t.Fatal(err)
		}
		most, n := maxTransfers/len(p.Programs(1)), len(x.taken)
		if all := 8*nodes <= most; all != (x.taken == nil) || !all && (n < most*3/4 || n > most+1) {
			t.Errorf("%d nodes: %d ranks are drawn (0: none, all are taken) of %d, for %d", nodes, n, 8*nodes,
				most)
		}
	}
	if n := len(drawnOf(1<<20, fewDrawn)); n != fewDrawn {
		t.Errorf("%d ranks of many are drawn", n)
	}
}

// A rank of a scatter that has a batch behind another may wait for it, and so may the root
// for that rank: what ends is then not shown by its transfers.
func TestBatchesThatWaitAreSeen(t *testing.T) {
	c := draw.Plain(2, 2, 2)
	p, err := build.Plan(c, plan.Request{Func: coll.Scatter, Count: 5000, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	x := newTransfers(p)
	x.progs = p.Programs(3)
	x.progs = append(x.progs, x.progs[0])
	last := len(x.progs) - 1
	for i, behind := range [...]int32{0, 1} {
		x.progs[last].Phase = x.progs[0].Phase + behind
		_ = x.ofProgram(3, last) // its connection was met
		if x.waits != (i > 0) {
			t.Errorf("a batch %d behind: waits %t", behind, x.waits)
		}
	}
}

// TestProofsAreKept: a plan with many iterations is proved by the same few as a larger
// one, in place by others; and one whose iterations differ is proved whole.
func TestProofsAreKept(t *testing.T) {
	c := draw.Plain(2, 2, 2)
	var s Proofs
	for i, of := range []struct {
		mib     int64
		inPlace bool
		kept    int
	}{{256, false, 1}, {512, false, 1}, {1024, false, 1}, {1024, true, 2}} {
		p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Algo: coll.Tree, Proto: coll.LL,
			Count: of.mib << 18, Type: coll.Float32, Channels: 2, Warps: 16, InPlace: of.inPlace})
		if err != nil {
			t.Fatal(err)
		}
		if tooLarge(p) != "" || opsOf(p) <= wholeOps {
			t.Fatalf("%d MiB: %g ops, none of those that repeat", of.mib, opsOf(p))
		}
		if missing, err := s.Parts(p); missing != "" || err != nil {
			t.Fatalf("%d MiB: %s %v", of.mib, missing, err)
		}
		if len(s.done) != of.kept {
			t.Errorf("%d: %d proofs, want %d", i, len(s.done), of.kept)
		}
		if i > 0 {
			continue
		}
		l := export.List(p)
		for k := range l.Programs {
			n := len(l.Programs[k].Ops) / 2
			l := export.List(p)
			l.Programs[k].Ops[n].Bytes--
			q, err := l.Plan(p)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Parts(q); err == nil {
				t.Errorf("program %d: a fault half way is not seen", k)
			}
		}
	}
	if n := reflect.TypeFor[plan.Request]().NumField(); n != 24 {
		t.Errorf("a request has %d fields; proofKey knows 24", n)
	}
	if n := reflect.TypeFor[plan.Params]().NumField(); n != 7 {
		t.Errorf("settings have %d fields; proofKey knows 7", n)
	}
}

// TestLargeTreesThatShapesDoNotProveAreProvedByChannels: those whose nodes form no trees, and what shapes say
// is wrong, is run on some channels.
func TestLargeTreesThatShapesDoNotProveAreProvedByChannels(t *testing.T) {
	for _, perNode := range []int{1, 2} { // ranks are nodes, or nodes have several links up
		c := draw.Plain(perNode, 4400/perNode, 16)
		p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Algo: coll.Tree, Proto: coll.LL,
			Count: 3 << 17, Type: coll.Float32, Channels: 16, Warps: 16})
		if err != nil {
			t.Fatal(err)
		}
		if tooLarge(p) == "" || p.Iterations() >= fewIterated {
			t.Fatalf("%g ops, %d iterations: proved otherwise", opsOf(p), p.Iterations())
		}
		if ok, err := ofTree(p); ok != (perNode == 1) || err != nil {
			t.Fatalf("%d ranks a node: proved by shapes %t, %v", perNode, ok, err)
		}
		if missing, err := new(Proofs).Parts(p); missing != "" || err != nil {
			t.Errorf("%d ranks a node: %s %v", perNode, missing, err)
		}
		at := p.Programs(1)[0]
		q, err := plan.New(p.Comm, p.Req, p.Split, changedOp{altered{p,
			func(l []plan.Program) []plan.Program { return l }}, at, 1,
			func(op *plan.Op) bool { op.Bytes -= 4; return false }})
		if err != nil {
			t.Fatal(err)
		}
		if missing, err := new(Proofs).Parts(q); missing != "" || err == nil {
			t.Errorf("%d ranks a node: another size is not seen (%s)", perNode, missing)
		}
	}
}
