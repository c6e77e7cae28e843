package pairs

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"pgregory.net/rapid"
)

// TestImbalanceIsWhatWasAsked: each sender sends as much as in an alltoall of equal parts,
// the busiest receiver gets as many times the mean as asked, to a pack for each sender, and
// a seed gives the same again.
func TestImbalanceIsWhatWasAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 24).Draw(t, "ranks")
		count := rapid.Int64Range(1, 1<<20).Draw(t, "count")
		typ := coll.DataType(rapid.IntRange(0, 9).Draw(t, "type"))
		s := Source{Op: coll.AllToAllV, Imbalance: rapid.Float64Range(1, float64(n)).Draw(t, "imbalance"),
			Seed: rapid.Uint64().Draw(t, "seed")}
		x, mean, err := s.Of(n, count, typ)
		if err != nil || mean != count {
			t.Fatal(mean, err)
		}
		if x == nil {
			return // equal parts
		}
		for r := range int32(n) {
			if x.Sent(r) != count*int64(n) {
				t.Fatalf("rank %d sends %d, not %d", r, x.Sent(r), count*int64(n))
			}
		}
		got, want, pack := float64(x.Spread().MostReceived), s.Imbalance*float64(count)*float64(n),
			16/float64(typ.Size())*float64(n)
		if got < want-pack-1 || got > want+pack+1 || x.Count() != count {
			t.Fatalf("%d ranks, %d elements: the busiest receives %g, should be %g", n, count, got, want)
		}
		if again, _, _ := s.Of(n, count, typ); again.Spread() != x.Spread() || again.At(0, 0) != x.At(0, 0) {
			t.Fatal("the same seed gives other counts")
		}
	})
}

// TestRead: both formats, and errors with their place.
func TestRead(t *testing.T) {
	for _, text := range []string{"# by sender\n0, 1\n2,3\n", "[[0,1],[2,3]]"} {
		rows, err := Read([]byte(text), "f")
		if err != nil || len(rows) != 2 || rows[1][0] != 2 || rows[0][1] != 1 {
			t.Errorf("%q: %v, %v", text, rows, err)
		}
	}
	for text, want := range map[string]string{
		"":                           "f:1:1: no counts",
		"[]":                         "f:1:1: no counts",
		"0,1\n2,x\n":                 `f:2:3: "x" is no count`,
		"0,1\n2\n":                   "f:2:1: from rank 1 to rank 1: row 1 has 1 counts",
		"0,1\n2,-3\n":                "f:2:3: from rank 1 to rank 1: -3 is negative",
		"0,\"1\n":                    "f:",
		"0,99999999999999999999":     "f:1:3: ",
		"0,9000000000000000000\n1,2": "f:1:3: from rank 0 to rank 1: more elements than any memory",
		"[[0,1],\n [2,-3]]":          "f:2:5: from rank 1 to rank 1: -3 is negative",
		"[[0,1],\n [2,3,4]]":         "f:2:7: from rank 1 to rank 2: row 1 has 3 counts",
		"[[0,1.5],[0,0]]":            "f:1:5: ",
		"{}":                         "f:1:1: ",
		"\x00\xff":                   "f:1:1: ",
	} {
		if rows, err := Read([]byte(text), "f"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, rows, err, want)
		}
	}
}
