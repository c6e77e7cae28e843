package plan

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
)

func text(t interface{ Fatal(...any) }, p *Plan) string {
	var b bytes.Buffer
	if err := WriteText(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTextReadsBack: what is written is read back the same and proves right.
func TestTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := randomComm(t, shape{rapid.IntRange(1, 4).Draw(t, "perNode"), rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 3).Draw(t, "channels")})
		r := randomRequest(t, c)
		r.Count = min(r.Count, 1<<14)
		p, err := Build(c, r)
		if err != nil {
			t.Fatal(err)
		}
		if p.TotalOps() > 20000 {
			t.Skip("long")
		}
		first := text(t, p)
		q, err := ReadText("plan.txt", strings.NewReader(first))
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if second := text(t, q); first != second {
			t.Fatalf("text changes:\n%s\n---\n%s", first, second)
		}
		if err := Check(q); err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
	})
}

// TestTextOfARing shows the form; testdata/ring2.plan is also the picture of
// it for readers.
func TestTextOfARing(t *testing.T) {
	c := plain(2, 1, 1)
	p, err := Build(c, Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple, Count: 1024, Type: coll.Float32, Channels: 1, Warps: 17})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/ring2.plan")
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, p); got != string(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestTextFaultsAreShown(t *testing.T) {
	good, err := os.ReadFile("testdata/ring2.plan")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ old, new, want string }{
		{"simccl-plan 1", "simccl-plan 2", "p:1:1: not plan text"},
		{"ranks 2", "ranks two", `p:2:7: "two" is not a number; write a number from 1`},
		{"ranks 2", "ranks 9999999", "p:2:7: 9999999 is out of range"},
		{"op all_reduce", "op allreduce", `p:3:4: "allreduce" is not known here; write one of broadcast reduce`},
		{"conn 1 1", "conn 3 1", "p:5:6: 3 is out of range"},
		{"0 > 1 channel", "0 > 2 channel", "p:4:12: 2 is out of range; write a number from 0 to 1"},
		{"program 1", "program 0", "p:10:"},
		{"recv+copy ", "copy+recv ", `p:9:1: "copy+recv" is no primitive`},
		{"step 0", "step 0 more", `"more" is too much`},
		{" > 0 chunk 1", " > 7 chunk 1", "7 is out of range"},
		{"in+2048", "in-2048", `"in-2048" where "chunk" belongs`},
	} {
		bad := strings.Replace(string(good), tc.old, tc.new, 1)
		_, err := ReadText("p", strings.NewReader(bad))
		var te *TextError
		if !errors.As(err, &te) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q for %q: %v; want %q", tc.new, tc.old, err, tc.want)
		}
	}
	if good, err = os.ReadFile("testdata/all_gather-CollNetDirect.plan"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ old, new, want string }{
		{"net 0 ranks 0,2", "net 0 ranks 0", "p:4:13: 1 ranks for 2 nodes"},
		{"net 0 ranks 0,2", "net 0 ranks 0,0", "0 twice"},
		{"net 0 ranks 0,2", "net 0 ranks 0,4", "4 is out of range"},
		{"part 0 of 2", "part 0 of 1", "1 is out of range; write a number from 2"},
		{"> net channel 0 collnet 0", "> net channel 0 collnet 7", "7 is out of range"},
		{"> net channel 0 collnet 0", "> net channel 0 collnet 1", "rank 0 has no channel 0 in group 1"},
		{"> net channel 0 collnet 0", "> 1 channel 0 collnet 0", "between a rank and the network; write net"},
		{"> net channel 0 collnet 0", "> net channel 0 ring", "is of kind collnet"},
	} {
		bad := strings.Replace(string(good), tc.old, tc.new, 1)
		_, err := ReadText("p", strings.NewReader(bad))
		var te *TextError
		if !errors.As(err, &te) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q for %q: %v; want %q", tc.new, tc.old, err, tc.want)
		}
	}
	if _, err := ReadText("p", strings.NewReader("")); err == nil {
		t.Error("empty text is no plan")
	}
}

// FuzzPlan: any text gives an error or a plan whose text reads back; checking
// it never panics.
func FuzzPlan(f *testing.F) {
	good, err := os.ReadFile("testdata/ring2.plan")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	for _, r := range kernels(2) {
		r.Count, r.Type, r.Channels = 64, coll.Float32, 1
		p, err := Build(plain(2, 2, 1), r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text(f, p))
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ReadText("f", strings.NewReader(s))
		if err != nil {
			var te *TextError
			if !errors.As(err, &te) {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		if p.Comm.NRanks > 256 {
			return
		}
		first := text(t, p)
		q, err := ReadText("g", strings.NewReader(first))
		if err != nil {
			t.Fatalf("%v in\n%s", err, first)
		}
		if second := text(t, q); first != second {
			t.Fatalf("text changes:\n%s\n---\n%s", first, second)
		}
		_ = Check(p)
		_ = WriteFlows(new(bytes.Buffer), p)
		_ = WriteGOAL(new(bytes.Buffer), p)
	})
}
