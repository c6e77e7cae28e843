package explain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

func sideOf(c *comm.Comm, cfg *config.Config) explain.Side {
	return explain.Side{Comm: c, Access: cfg.Topo.Access}
}

// TestCompareStories are whole comparisons as a user reads them.
func TestCompareStories(t *testing.T) {
	for _, s := range []struct {
		name         string
		fileA, fileB string
		nodes        int
		envA, envB   []string
	}{
		{"ring-against-tree", "dgx-h100.xml", "dgx-h100.xml", 2, []string{"NCCL_ALGO=Ring"},
			[]string{"NCCL_ALGO=Tree"}},
		{"a100-against-h100", "dgx-a100.xml", "dgx-h100.xml", 2, nil, nil},
		{"peer-to-peer-off", "dgx-a100.xml", "dgx-a100.xml", 1, nil, []string{"NCCL_P2P_DISABLE=1"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			a, b := sideOf(build(t, s.fileA, s.nodes, comm.MulticastAuto, s.envA...)),
				sideOf(build(t, s.fileB, s.nodes, comm.MulticastAuto, s.envB...))
			d, err := explain.Compare(a, b, []coll.Func{coll.AllReduce, coll.Broadcast})
			if err != nil {
				t.Fatal(err)
			}
			o := comm.Op{Func: coll.AllReduce, Type: coll.Float32, Count: 1 << 22}
			ring := explain.Timing{Choice: "Ring LL128", Channels: 16, Us: 100, BusBW: 150,
				Link: "node0 NIC0→mlx5_0", LinkUs: 80}
			tree := explain.Timing{Choice: "Tree LL128", Channels: 8, Us: 125.5, BusBW: 119.52,
				Link: "node1 GPU3→NVSwitch", LinkUs: 110}
			d.AddTime(a, b, o, o, 1<<20, ring, ring)
			d.AddTime(a, b, o, o, 1<<24, ring, tree)
			golden.Text(t, "testdata/compare-"+s.name+".txt", d.Text())
		})
	}
}

// A machine does not differ from itself, at any size.
func TestCompareWithItself(t *testing.T) {
	for _, file := range []string{"dgx-h100.xml", "pcie-l40s-8.xml"} {
		x := sideOf(build(t, file, 2, comm.MulticastAuto))
		d, err := explain.Compare(x, x, coll.Funcs())
		if err != nil {
			t.Fatal(err)
		}
		o := comm.Op{Func: coll.AllReduce, Type: coll.Float32, Count: 1 << 20}
		same := explain.Timing{Choice: "Ring LL", Us: 10}
		d.AddTime(x, x, o, o, 4<<20, same, same)
		if !d.Same() || !strings.Contains(d.Text(), "Nothing differs") {
			t.Errorf("%s differs from itself:\n%s", file, d.Text())
		}
		d.AddTime(x, x, o, o, 4<<20, same, explain.Timing{Choice: "Ring LL", Us: 11})
		if d.Same() {
			t.Error("another time does not count")
		}
	}
}

// The ranges of a comparison are exactly where two models choose differently:
// asked at their ends, and just outside, the models agree with them; and with
// the sides swapped the same ranges come out.
func TestComparedRangesAreExact(t *testing.T) {
	ca, cfgA := build(t, "dgx-h100.xml", 2, comm.MulticastAuto)
	cb, cfgB := build(t, "dgx-h100.xml", 4, comm.MulticastAuto, "NCCL_PROTO=^LL128")
	a, b := sideOf(ca, cfgA), sideOf(cb, cfgB)
	d, err := explain.Compare(a, b, []coll.Func{coll.AllReduce})
	if err != nil {
		t.Fatal(err)
	}
	back, err := explain.Compare(b, a, []coll.Func{coll.AllReduce})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Choices) < 3 || len(d.Choices) != len(back.Choices) {
		t.Fatalf("%d ranges, %d with the sides swapped", len(d.Choices), len(back.Choices))
	}
	choose := func(c *comm.Comm, size units.Bytes) string {
		x, err := c.Choose(tuning.Op{Func: coll.AllReduce, Type: coll.Float32, Count: int64(size / 4)})
		if err != nil {
			t.Fatal(err)
		}
		return x.Algo.String() + " " + x.Proto.String()
	}
	for i, r := range d.Choices {
		if s := back.Choices[i]; s.From != r.From || s.To != r.To || s.A != r.B || s.B != r.A {
			t.Errorf("range %d is %+v, and %+v with the sides swapped", i, r, s)
		}
		if len(r.Why) == 0 {
			t.Errorf("%d to %d: no reason", r.From, r.To)
		}
		for _, size := range []units.Bytes{r.From, r.To / 4 * 4} {
			if x, y := choose(ca, size), choose(cb, size); x != r.A || y != r.B {
				t.Errorf("at %d the range has %s and %s, the models %s and %s", size, r.A, r.B, x, y)
			}
		}
		inRange := func(size units.Bytes) bool {
			return slices.ContainsFunc(d.Choices, func(o explain.ChoiceChange) bool {
				return o.From <= size && size <= o.To
			})
		}
		if before := r.From - 4; before >= 4 && !inRange(before) && choose(ca, before) != choose(cb, before) {
			t.Errorf("%d is in no range, yet the models differ", before)
		}
	}
}
