package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/units"
)

// tables writes the tables of all ranks of a plan.
func tables(t *testing.T, nodes int, r plan.Request) []*Table {
	t.Helper()
	p, err := build.Plan(exectest.Comm(4/nodes, nodes, 2), r)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCompiler(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []*Table
	for rank := range 4 {
		table, err := c.Table(rank)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, table)
	}
	return all
}

// everyRequest calls do for plans of every kind that has a table.
func everyRequest(t *testing.T, do func(t *testing.T, all []*Table)) {
	for _, nodes := range []int{1, 2} {
		for _, r := range exectest.Requests(nodes) {
			if r.Algo == coll.NVLS || r.Algo == coll.NVLSTree || nodes > 1 && r.Proto == coll.LL128 {
				continue
			}
			for _, r.Count = range []int64{1000, 3_000_001} { // LL beside Simple, and Simple alone
				t.Run(fmt.Sprintf("%d nodes/%v/%v/%v/%d", nodes, r.Func, r.Algo, r.Proto, r.Count),
					func(t *testing.T) { do(t, tables(t, nodes, r)) })
			}
		}
	}
}

// TestWarpsAreDealtOnce: of the programs that run on a channel at the same
// time, every warp has at most one, and barriers are no two programs'.
func TestWarpsAreDealtOnce(t *testing.T) {
	everyRequest(t, func(t *testing.T, all []*Table) {
		for _, table := range all {
			for _, l := range table.lanes {
				progs := table.programs[l.first:][:l.count]
				for i, a := range progs {
					if a.warps < 1 || a.warp+a.warps > maxWarps || int(a.warp+a.warps) > table.warps ||
						a.split == 1 && a.warps < 3 {
						t.Errorf("warps %d+%d of %d (split %d)", a.warp, a.warps, table.warps, a.split)
					}
					if last := a.barrier + a.split; a.warps > 1 && (a.barrier < 1 || last > 15) {
						t.Errorf("barriers %d to %d", a.barrier, last)
					}
					for _, b := range progs[:i] {
						if a.phase != b.phase {
							continue
						}
						if a.warp < b.warp+b.warps && b.warp < a.warp+a.warps {
							t.Errorf("warps %d+%d and %d+%d", a.warp, a.warps, b.warp, b.warps)
						}
						if a.warps > 1 && b.warps > 1 && a.barrier <= b.barrier+b.split &&
							b.barrier <= a.barrier+a.split {
							t.Errorf("two programs at barrier %d", a.barrier)
						}
					}
				}
			}
		}
	})
}

// TestBothEndsAgreeWhatGoesStraight: a message that its sender writes to its
// place is one that its receiver looks for there, at that place.
func TestBothEndsAgreeWhatGoesStraight(t *testing.T) {
	straight := 0
	everyRequest(t, func(t *testing.T, all []*Table) {
		sent, got := map[int32][]string{}, map[int32][]string{}
		for _, table := range all {
			for i, pr := range table.programs {
				for _, o := range table.ops[table.firstOp[i]:][:pr.count] {
					for k := range o.tos {
						if e := table.ends[pr.end[o.to[k]]]; o.do&uint16(plan.HoldSend) == 0 {
							sent[e.conn] = append(sent[e.conn], where(o.do&toPlace != 0, o.there, o.bytes))
						}
					}
					for k := range o.froms {
						if e := table.ends[pr.end[o.from[k]]]; o.do&uint16(plan.HoldRecv) == 0 {
							got[e.conn] = append(got[e.conn], where(o.do&inPlace != 0, o.dst, o.bytes))
						}
					}
					if o.do&toPlace != 0 {
						straight++
					}
				}
			}
		}
		for conn := range all[0].wiring.conns {
			if c := int32(conn); !slices.Equal(sent[c], got[c]) {
				t.Errorf("connection %d: sent %v, looked for %v", c, sent[c], got[c])
			}
		}
	})
	if straight == 0 {
		t.Error("nothing goes straight to its place")
	}
}

func where(straight bool, at, bytes uint64) string {
	if !straight {
		return "slot"
	}
	return fmt.Sprint(at, "+", bytes)
}

// TestConnectionsHaveMemoryOfTheirOwn: no FIFO or counter lies in another.
func TestConnectionsHaveMemoryOfTheirOwn(t *testing.T) {
	everyRequest(t, func(t *testing.T, all []*Table) {
		w := all[0].wiring
		type span struct {
			place
			size units.Bytes
		}
		var spans []span
		for i := range w.conns {
			if c := &w.conns[i]; c.used {
				spans = append(spans, span{c.slots, all[0].plan.Comm.BuffSizes[c.proto]}, span{c.tail, 8},
					span{c.head, 8}, span{c.ready, 8})
			}
		}
		for i, a := range spans {
			room := w.arena[a.rank]
			if a.host {
				room = w.host[a.rank]
			}
			if a.off+a.size > room {
				t.Errorf("%+v ends beyond %d", a, room)
			}
			for _, b := range spans[:i] {
				if a.rank == b.rank && a.host == b.host && a.off < b.off+b.size && b.off < a.off+a.size {
					t.Errorf("%+v and %+v overlap", a, b)
				}
			}
		}
	})
}

// TestKernelKnowsThePlansProtocols: a plan of LL or LL128 alone gets the kernel
// that knows no other protocol, and every kernel that is named is in its file.
func TestKernelKnowsThePlansProtocols(t *testing.T) {
	files, kinds := map[string]string{}, map[string]bool{}
	everyRequest(t, func(t *testing.T, all []*Table) {
		for _, table := range all {
			file, name := table.kernel[0], table.kernel[1]
			if files[file] == "" {
				text, err := ptx(file)
				if err != nil {
					t.Fatal(err)
				}
				files[file] = string(text)
			}
			if !strings.Contains(files[file], ".visible .entry "+name+"(") {
				t.Errorf("%s.ptx has no %s", file, name)
			}
			kind, _, _ := strings.Cut(name, "_")
			kinds[kind] = true
			for _, pr := range table.programs {
				if p := coll.Protocol(pr.proto); kind == "words" && p != coll.LL || kind == "lines" &&
					p != coll.LL128 {
					t.Errorf("%s for a program of %v", name, p)
				}
			}
		}
	})
	for _, kind := range []string{"words", "lines", "plan"} {
		if !kinds[kind] {
			t.Errorf("no plan runs on a kernel %s_*", kind)
		}
	}
}

// TestGridsAreWholeClusters: where the device has them and there is one at least.
func TestGridsAreWholeClusters(t *testing.T) {
	for _, c := range []struct{ sm, driver, blocks, want int }{
		{90, 13000, 24, 24}, {90, 13000, 22, 24}, {90, 13000, 4, 4}, {90, 13000, 3, 3}, {90, 13000, 1, 1},
		{90, 11080, 5, 8}, {90, 11070, 5, 5}, {80, 13000, 22, 22},
	} {
		dev := &Device{SM: c.sm, d: &Driver{version: c.driver}}
		if got := dev.Clustered(c.blocks); got != c.want {
			t.Errorf("sm_%d, driver %d, %d blocks: a grid of %d, want %d", c.sm, c.driver, c.blocks, got,
				c.want)
		}
	}
}
