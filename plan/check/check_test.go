package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/export"
)

// mutation damages a listing at op k of program i and says what Check must
// complain of.
type mutation struct {
	name string
	does func(l *export.Listing, i, k int) bool // false: does not apply here
	want []string                               // any of these words
}

var mutations = []mutation{
	{"drop an op", func(l *export.Listing, i, k int) bool {
		ops := l.Programs[i].Ops
		l.Programs[i].Ops = append(ops[:k:k], ops[k+1:]...)
		return true
	}, nil},
	{"send to another rank", func(l *export.Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		for _, c := range l.Conns {
			if len(op.To) > 0 && c.Src >= 0 && c.Src != op.Rank {
				op.To[0] = c.ID
				return true
			}
		}
		return false
	}, []string{"sends on connection"}},
	{"receive from another connection", func(l *export.Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		for _, c := range l.Conns {
			if len(op.From) > 0 && c.Src >= 0 && c.ID != op.From[0] {
				op.From[0] = c.ID
				return true
			}
		}
		return false
	}, nil},
	{"write one element off", func(l *export.Listing, i, k int) bool {
		l.Programs[i].Ops[k].Dst.Off += 4
		return l.Programs[i].Ops[k].Do&plan.Copy != 0 && l.Programs[i].Ops[k].Bytes > 0
	}, nil},
	{"read one element off", func(l *export.Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		op.Src.Off += 4
		return op.Src.Buf != plan.NoBuffer && op.Bytes > 0
	}, nil},
	{"write before the buffer", func(l *export.Listing, i, k int) bool {
		l.Programs[i].Ops[k].Dst.Off = -4
		return l.Programs[i].Ops[k].Do&plan.Copy != 0 && l.Programs[i].Ops[k].Bytes > 0
	}, []string{"touches"}},
	{"send fewer bytes", func(l *export.Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		op.Bytes -= 4
		return op.Bytes >= 0 && op.Do&(plan.Send|plan.Recv) != 0
	}, nil},
	{"do not reduce", func(l *export.Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		had := op.Do&plan.Reduce != 0 && op.Bytes > 0
		op.Do &^= plan.Reduce
		return had && (op.Src.Buf != plan.NoBuffer || len(op.From) > 1)
	}, []string{"several operands"}},
	{"add the own part twice", func(l *export.Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		if op.Do&(plan.Recv|plan.Reduce|plan.Copy) != plan.Recv|plan.Copy || op.Bytes == 0 {
			return false
		}
		op.Do |= plan.Reduce
		op.Src = plan.Ref{Buf: plan.Input, Off: op.Dst.Off}
		return true
	}, nil},
	{"swap two ops", func(l *export.Listing, i, k int) bool {
		ops := l.Programs[i].Ops
		if k+1 >= len(ops) || ops[k].Src == ops[k+1].Src && ops[k].Dst == ops[k+1].Dst ||
			!(meets(ops[k].From, ops[k+1].From) || meets(ops[k].To, ops[k+1].To)) {
			return false
		}
		ops[k], ops[k+1] = ops[k+1], ops[k]
		return true
	}, nil},
	{"write the input", func(l *export.Listing, i, k int) bool {
		l.Programs[i].Ops[k].Dst.Buf = plan.Input
		return l.Programs[i].Ops[k].Do&plan.Copy != 0
	}, []string{"writes its input"}},
	{"repeat an op", func(l *export.Listing, i, k int) bool {
		ops := l.Programs[i].Ops
		l.Programs[i].Ops = append(ops[:k+1:k+1], ops[k:]...)
		return ops[k].Do&(plan.Send|plan.Recv) != 0
	}, nil},
	{"scale too early", func(l *export.Listing, i, k int) bool {
		op := &l.Programs[i].Ops[k]
		had := op.Do&(plan.Send|plan.PostOp) == plan.Send && op.Do&plan.Recv == 0 && op.Bytes > 0 &&
			op.Src.Buf == plan.Input
		op.Do |= plan.PostOp
		return had
	}, []string{"not complete"}},
}

// meets reports whether two ops share a connection.
func meets(a, b []int32) bool {
	return slices.ContainsFunc(a, func(x int32) bool { return slices.Contains(b, x) })
}

// TestCheckSeesEveryFault damages right plans in every way and place.
func TestCheckSeesEveryFault(t *testing.T) {
	seen := map[string]int{}
	for _, s := range [][3]int{{4, 1, 2}, {2, 2, 2}} {
		c := draw.Plain(s[0], s[1], s[2])
		for _, r := range draw.Kernels(s[1]) {
			r.Count, r.Type, r.Channels = 20000, coll.Float32, s[2]
			p, err := build.Plan(c, r)
			if err != nil {
				t.Fatal(err)
			}
			if err := proveListed(t, p, export.List(p)); err != nil {
				t.Fatalf("listed %v %v/%v: %v", r.Func, r.Algo, r.Proto, err)
			}
			for _, m := range mutations {
				for i, lp := range export.List(p).Programs {
					for k := 0; k < len(lp.Ops); k += 1 + len(lp.Ops)/4 {
						l := export.List(p)
						if !m.does(l, i, k) {
							continue
						}
						name := fmt.Sprintf("%v %v/%v: %s, program %d op %d", r.Func, r.Algo, r.Proto, m.name,
							i, k)
						seen[m.name]++
						requireFault(t, name, proveListed(t, p, l), m.want)
						if q, err := l.Plan(p); err != nil || prove(q, 0) == nil {
							t.Errorf("%s: not seen by sums of ranks (%v)", name, err)
						}
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
	var fault *Error
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

// TestSumsTellSetsApart: sets of many ranks are known by their sums, one that has a
// rank twice and one that lacks one too.
func TestSumsTellSetsApart(t *testing.T) {
	const n = 1 << 15
	m, all := newSummed(n)
	sum := func(of func(r int32) int32) int32 {
		id := of(0)
		for r := int32(1); r < n; r++ {
			id, _ = m.union(id, of(r))
		}
		return id
	}
	if got := sum(func(r int32) int32 { return r }); got != all {
		t.Errorf("the sum of all ranks is set %d, not %d", got, all)
	}
	for what, got := range map[string]int32{
		"rank 7 for rank 8":     sum(func(r int32) int32 { return r - r/8*(8/max(8, r)) }),
		"the last rank missing": sum(func(r int32) int32 { return min(r, n-2) }),
	} {
		if got == all {
			t.Errorf("%s: taken for the set of all ranks", what)
		}
	}
	if got := m.members(3); got != "[3]" {
		t.Errorf("rank 3 alone is %s", got)
	}
}

// TestCheckSeesDeadlock: two ranks that both receive first.
func TestCheckSeesDeadlock(t *testing.T) {
	c := draw.Plain(2, 1, 1)
	p, err := build.Plan(c, plan.Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple,
		Count: 1000, Type: coll.Float32, Channels: 1, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	l := export.List(p)
	for i := range l.Programs {
		ops := l.Programs[i].Ops
		ops[0], ops[2] = ops[2], ops[0]
	}
	if err := proveListed(t, p, l); err == nil || !strings.Contains(err.Error(), "deadlock") {
		t.Fatalf("got %v, want a deadlock", err)
	}
}

// proveListed proves the plan of a listing.
func proveListed(t *testing.T, p *plan.Plan, l *export.Listing) error {
	t.Helper()
	q, err := l.Plan(p)
	if err != nil {
		t.Fatal(err)
	}
	return Plan(q)
}
