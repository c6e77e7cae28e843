package build

import (
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/plan/export"
)

// TestRanksOfANodeTakeTurns: in an alltoall whose groups of ranks that take turns
// are nodes, every rank does what rank 0 does, to peers that are as many nodes and
// places away.
func TestRanksOfANodeTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		per, nodes := rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "perNode"), rapid.IntRange(2, 9).Draw(t,
			"nodes")
		c := draw.Plain(per, nodes, 1<<rapid.IntRange(0, 4).Draw(t, "channels"))
		p, err := Plan(c, plan.Request{Func: coll.AllToAll, Algo: coll.Ring, Proto: coll.Simple,
			Count: rapid.Int64Range(1, 1<<20).Draw(t, "count"), Type: coll.Float32, Warps: 16})
		if err != nil {
			t.Fatal(err)
		}
		want := p.Programs(0)
		for r := int32(1); r < int32(c.NRanks); r++ {
			got := p.Programs(r)
			if len(got) != len(want) {
				t.Fatalf("rank %d has %d programs, rank 0 %d", r, len(got), len(want))
			}
			for i := range got {
				a, b := want[i], got[i]
				if a.Role != plan.RoleCopy && peerOf(p, &b) != turned(c, peerOf(p, &a), r) {
					t.Fatalf("program %d of rank %d is with %d, that of rank 0 with %d", i, r, peerOf(p, &b),
						peerOf(p, &a))
				}
				a.Rank, a.Transfer.Conn, a.Transfer.Off, a.Transfer.Dst = r, b.Transfer.Conn, b.Transfer.Off,
					b.Transfer.Dst
				if a != b {
					t.Fatalf("program %d of rank %d is %+v, that of rank 0 %+v", i, r, b, a)
				}
			}
		}
	})
}

// peerOf is the other end of a program's connection.
func peerOf(p *plan.Plan, pr *plan.Program) int32 {
	c := p.Conn(pr.Transfer.Conn)
	if pr.Role == plan.RoleSend {
		return c.Dst
	}
	return c.Src
}

// turned is as far from rank by as peer is from rank 0.
func turned(c *connect.Layout, peer, by int32) int32 {
	per, nodes := int32(c.MaxLocalRanks), int32(c.NNodes)
	return (peer/per+by/per)%nodes*per + (peer+by)%per
}

// TestManyConnectionsShareIDs: an alltoall of more connections than ids has those of
// the first node; the programs of other nodes name them as well, and what would
// need each by itself is refused.
func TestManyConnectionsShareIDs(t *testing.T) {
	c := draw.Plain(8, 6000, 16)
	p, err := Plan(c, plan.Request{Func: coll.AllToAll, Algo: coll.Ring, Proto: coll.Simple, Count: 256,
		Type: coll.Float32, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	if p.Sharing() != 6000 {
		t.Fatalf("%d connections share an id, want 6000", p.Sharing())
	}
	want, got := p.Programs(3), p.Programs(3+8*1234)
	for i := range got {
		if a, b := &want[i], &got[i]; a.Transfer.Conn != b.Transfer.Conn && a.Role == plan.RoleSend {
			t.Fatalf("program %d of rank 3 is on connection %d, that of the rank 1234 nodes on on %d", i,
				a.Transfer.Conn, b.Transfer.Conn)
		}
		if pc := p.Conn(got[i].Transfer.Conn); pc.Src >= 8 {
			t.Fatalf("connection %d is of rank %d, which is not of the first node", pc.ID, pc.Src)
		}
	}
	var refused *plan.UnsupportedError
	for what, err := range map[string]error{"proof": check.Plan(p), "text": export.WriteText(io.Discard, p),
		"messages": export.WriteMessages(io.Discard, p)} {
		if !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want an UnsupportedError", what, err)
		}
	}
}
