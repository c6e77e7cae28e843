package goal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// TestBinaryTree: LogGOPSim's example of a broadcast over 32 ranks: every rank but
// the first receives once, and with 10 a message, the last has it after 5 levels
// (each sender's messages are in flight at once).
func TestBinaryTree(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "workloads", "samples", "goal",
		"binary_tree_32.goal"))
	if err != nil {
		t.Skip("the samples beside the checkout are not there: " + err.Error())
	}
	f, err := ReadText(bytes.NewReader(text), "f")
	if err != nil {
		t.Fatal(err)
	}
	sends, recvs := 0, 0
	for _, r := range f.Ranks {
		for _, op := range r.Ops {
			switch op.Kind {
			case Send:
				sends++
			case Recv:
				recvs++
			}
		}
	}
	if len(f.Ranks) != 32 || sends != 31 || recvs != 31 {
		t.Errorf("%d ranks, %d sends, %d receives", len(f.Ranks), sends, recvs)
	}
	p, err := f.Program()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lint(); err != nil {
		t.Fatal(err)
	}
	r, err := streams.Run(t.Context(), streams.Apart(p, func(*workload.Call) units.Time { return 10 }, 0))
	if err != nil || r.Elapsed() != 50 {
		t.Errorf("%v %v", r, err)
	}
	roundTrip(t, f)
}

// roundTrip writes and reads a schedule in both forms.
func roundTrip(t *testing.T, f *File) {
	t.Helper()
	sortDeps(f)
	var text, bin bytes.Buffer
	if err := f.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	again, err := ReadText(bytes.NewReader(text.Bytes()), "t")
	if err != nil {
		t.Fatalf("%v\n%s", err, &text)
	}
	sortDeps(again)
	if diff := cmp.Diff(f.Ranks, again.Ranks); diff != "" {
		t.Fatal(diff)
	}
	if err := f.WriteBinary(&bin); err != nil {
		t.Fatal(err)
	}
	if again, err = ReadBinary(bytes.NewReader(bin.Bytes()), "b"); err != nil {
		t.Fatal(err)
	}
	sortDeps(again)
	if diff := cmp.Diff(f.Ranks, again.Ranks); diff != "" {
		t.Fatal(diff)
	}
}

const small = `// a comment
num_ranks 2 /* and
another */
rank 1 {
a: recv 8b from 0 tag 2
b: recv 8b from 0 tag 1 cpu 1
c: calc 100
c requires b
}
rank 0 {
x: calc 5 cpu 3 nic 1
send 8b to 1 tag 1
y: send 8b to 1 tag 2
y irequires x
}
`

// TestSmall: comments, operations without labels, tags in different orders.
func TestSmall(t *testing.T) {
	f, err := ReadText(strings.NewReader(small), "f")
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, f)
	p, err := f.Program()
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Comms) != 2 || p.Comms[0].Name != "tag1" || len(f.Notes) != 1 {
		t.Errorf("%+v %v", p.Comms, f.Notes)
	}
	if err := p.Lint(); err != nil {
		t.Error(err)
	}
	r, err := streams.Run(t.Context(), streams.Apart(p, nil, 0))
	if err != nil || r.Elapsed() != 100_000 {
		t.Errorf("%v %v", r, err)
	}
	back, lost, err := From(p)
	if err != nil || len(lost) != 0 || len(back.Ranks[1].Ops) != 3 || back.Ranks[0].Ops[0].CPU != 3 {
		t.Errorf("%+v %v %v", back, lost, err)
	}
}

// TestFromProgram: collectives are named as lost.
func TestFromProgram(t *testing.T) {
	p, err := workload.Parse(`workload 1
ranks 2
comm w *
list a 0-1
  compute 7 5000
  record 7 1
  wait 19 1
  call 19 w all_reduce float sum 32 time=4000
  compute 7 1000 after=3
`, "p")
	if err != nil {
		t.Fatal(err)
	}
	f, lost, err := From(p)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := f.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `rank 1 {
l1: calc 5 cpu 7
l2: calc 0 cpu 7
l3: calc 0 cpu 19
l4: calc 4 cpu 19
l5: calc 1 cpu 7
l2 requires l1
l3 requires l2
l4 requires l3
l5 requires l2
l5 requires l4
}
`
	if got := b.String(); !strings.HasSuffix(got, want) {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"AllReduce: a computation of its recorded time (2)"}, lost); diff != "" {
		t.Error(diff)
	}
}

// TestFaultsHavePlaces of line and column.
func TestFaultsHavePlaces(t *testing.T) {
	for _, x := range []struct{ from, to, want string }{
		{"num_ranks 2", "num_rank 2", `f:2:1: "num_ranks" is expected here, not "num_rank"`},
		{"rank 0 {", "rank 2 {", "f:10:6: rank 2; there are ranks 0 to 1"},
		{"rank 0 {", "rank 1 {", "f:10:6: rank 1 for the second time"},
		{"8b from 0 tag 2", "8 from 0 tag 2",
			`f:5:9: "8" is no size; write 100b for send and recv, 100 for calc`},
		{"from 0 tag 2", "from 7 tag 2", `f:5:17: "7" is no rank`},
		{"c requires b", "c requires d", `f:8:12: no operation has the label "d"`},
		{"c requires b", "c needs b", `f:8:3: "needs" is not known here`},
		{"b: recv", "a: recv", "f:6:1: label a for the second time"},
		{"y irequires x\n}\n", "", "f:14:1: the file ends within a rank"},
	} {
		text := strings.Replace(small, x.from, x.to, 1)
		if _, err := ReadText(strings.NewReader(text), "f"); err == nil || !strings.Contains(err.Error(),
			x.want) {
			t.Errorf("%s → %s: %v, want %s", x.from, x.to, err, x.want)
		}
	}
	f, err := ReadText(strings.NewReader(strings.Replace(small, "from 0 tag 2", "from -1 tag 2", 1)), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Program(); !errors.Is(err, ErrAny) {
		t.Error(err)
	}
	cycle := strings.Replace(small, "c requires b", "c requires b b requires c", 1)
	if f, err = ReadText(strings.NewReader(cycle), "f"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Program(); err == nil ||
		err.Error() != "rank 1: operations wait for each other in a cycle" {
		t.Error(err)
	}
}

// FuzzText and FuzzBinary: an error, or a schedule that survives both forms.
func FuzzText(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ReadText(strings.NewReader(text), "f")
		if err != nil || len(x.Ranks) > 1000 {
			return
		}
		roundTrip(t, x)
		check(t, x)
	})
}

func FuzzBinary(f *testing.F) {
	x, err := ReadText(strings.NewReader(small), "f")
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := x.WriteBinary(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ReadBinary(bytes.NewReader(b), "f")
		if err != nil || len(x.Ranks) > 1000 {
			return
		}
		check(t, x)
	})
}

// check makes a program of a schedule; Lint may find messages without a partner.
func check(t *testing.T, x *File) {
	p, err := x.Program()
	if err != nil {
		return
	}
	if p.Lint() == nil {
		if _, err := streams.Run(t.Context(), streams.Apart(p, nil, 0)); err != nil {
			var d *streams.DeadlockError
			if !errors.As(err, &d) {
				t.Fatal(err)
			}
		}
	}
}

// sortDeps sorts dependencies, of which the binary form does not keep the order.
func sortDeps(f *File) {
	for i := range f.Ranks {
		for k := range f.Ranks[i].Ops {
			slices.Sort(f.Ranks[i].Ops[k].Requires)
			slices.Sort(f.Ranks[i].Ops[k].Starts)
		}
	}
}
