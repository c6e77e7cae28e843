package build

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
)

// TestPATIsNCCLs compares every piece that PAT moves with what NCCL 2.28.9's
// own PatRSAlgorithm and PatAGAlgorithm (include/collectives.h) say when run on
// a host: testdata/pat.txt holds, for the middle rank, the number of pieces and
// the FNV-1a digest of their lines.
func TestPATIsNCCLs(t *testing.T) {
	table, err := os.ReadFile("testdata/pat.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range strings.Split(strings.TrimSpace(string(table)), "\n") {
		var name string
		var n int
		var count int64
		if _, err := fmt.Sscan(want, &name, &n, &count); err != nil {
			t.Fatal(err)
		}
		f, err := coll.ParseFunc(name)
		if err != nil {
			t.Fatal(err)
		}
		r := plan.Request{Func: f, Algo: coll.PAT, Proto: coll.Simple, Count: count, Type: coll.Float32,
			Channels: 1, Warps: 16}
		s, err := Split(draw.Plain(1, n, 1), r)
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		lines := patPieces(&r, &s, n)
		fmt.Fprint(h, lines)
		if got := fmt.Sprintf("%s %d %d %d %016x", name, n, count, strings.Count(lines, "\n"),
			h.Sum64()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// patPieces prints those of the middle rank: distances received and sent at,
// offsets, steps ahead, whether each is posted, size, and places in memory.
func patPieces(r *plan.Request, s *plan.Split, ranks int) string {
	count, es := r.Elements()
	c := patConfig{Scatters: r.Func == coll.ReduceScatter, Rank: ranks / 2, Ranks: ranks, Block: count,
		End:   s.Lo.Count,
		Chunk: int64(s.Lo.ChunkSize / es), ChunkBytes: uint64(s.Lo.ChunkSize),
		ChannelBytes: uint64(s.Lo.Count) * uint64(es)}
	var b strings.Builder
	var w patWalk
	var t patPiece
	for w.start(&c); w.next(&t); {
		if t.RecvDim < 0 {
			t.RecvOff, t.PostRecv = -1, false
		}
		if t.SendDim < 0 {
			t.SendOff, t.PostSend = -1, false
		}
		switch {
		case c.Scatters && t.SendDim < 0:
			t.Ahead = 0
		case c.Scatters:
			t.Out = 0
		case t.RecvDim < 0:
			t.Ahead = 0
		default:
			t.In = 0
		}
		fmt.Fprintln(&b, t.RecvDim, t.SendDim, t.RecvOff, t.SendOff, t.Ahead, bit(t.PostRecv),
			bit(t.PostSend), t.Elems, t.In, t.Out)
	}
	return b.String()
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
