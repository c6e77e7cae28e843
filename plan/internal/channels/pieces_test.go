package channels_test

import (
	"fmt"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/units"
)

// TestPieces: how 2.21.5 cuts a transfer, by hand from enqueue.cc:872 and proxy.cc:601; 2.22.3
// gives a transfer one protocol and one chunk.
func TestPieces(t *testing.T) {
	for _, x := range []struct {
		perNode, nodes int
		dst            int32
		bytes          int64
		was, is        string
	}{
		{4, 2, 4, 1 << 20, "65536 Simple, 131072 8 times", "131072 Simple, 131072 8 times"},
		{4, 2, 4, 1<<20 + 1, "65536 Simple, 196608 5 times, 32768 Simple, 65537",
			"131072 Simple, 135168 7 times, 102401"},
		{4, 2, 4, 0, "32768 Simple, 0", "32768 Simple, 0"},
		{4, 2, 1, 1000, "32768 LL, 1000", "32768 LL, 1000"},
		{8, 1, 1, 100000, "131072 Simple, 100000", "32768 LL, 100000"},
		{2, 1, 1, 40000, "32768 LL, 16384 2 times, 7232", "32768 LL, 12288 3 times, 3136"},
		{2, 1, 1, 70000, "131072 Simple, 32768 2 times, 32768 LL, 4464", "32768 LL, 20480 3 times, 8560"},
	} {
		for i, want := range []string{x.was, x.is} {
			c := draw.Plain(x.perNode, x.nodes, 8)
			r, err := rules.For([]string{"2.21.5", "2.22.3"}[i])
			if err != nil {
				t.Fatal(err)
			}
			c.Rules, c.MaxLocalRanks = r, x.perNode
			s, err := channels.NewSizer(c, plan.Params{}, "send")
			if err != nil {
				t.Fatal(err)
			}
			cut := s.Message(&plan.Message{Dst: x.dst, Bytes: units.Bytes(x.bytes)}, nil, s.Of(0, x.dst),
				false)
			if got := parts(&cut); got != want {
				t.Errorf("NCCL %s, %d bytes on %d x %d: %s, want %s", r.Version(), x.bytes, x.nodes,
					x.perNode, got, want)
			}
		}
	}
}

// parts lists the parts of a transfer: chunk and protocol where they change, and bytes.
func parts(t *channels.Transfer) string {
	out := ""
	var proto coll.Protocol
	chunk, same, last := int64(-1), 0, int64(-1)
	flush := func() {
		switch {
		case same == 1:
			out += fmt.Sprint(", ", last)
		case same > 1:
			out += fmt.Sprintf(", %d %d times", last, same)
		}
		same = 0
	}
	for part := range t.Parts {
		p, c := t.Cut(part)
		begin, end := t.Bounds(part)
		if p != proto || c != chunk {
			flush()
			out += fmt.Sprintf(", %d %v", c, p)
			proto, chunk = p, c
		} else if end-begin != last {
			flush()
		}
		last = end - begin
		same++
	}
	flush()
	return out[2:]
}
