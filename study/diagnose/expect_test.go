package diagnose

import (
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
)

// TestBandIsWhatRegimesRecord: of an operation that is recorded its own errors count, of another those of its
// like; where all simulated times were too short, measured ones may be longer and not shorter.
func TestBandIsWhatRegimesRecord(t *testing.T) {
	all := func(*gpu.Regime) bool { return true }
	of := []gpu.Regime{
		{Op: "all_gather", From: 1, To: 100, Points: 1, Mean: 0.4, Bias: -0.4},
		{Op: "all_gather", From: 1, To: 100, Points: 3, Mean: 0.2, Bias: 0.2},
		{Op: "all_reduce", From: 1, To: 100, Points: 9, Mean: 0.1},
		{Op: "alltoall", From: 1, To: 100, Points: 1, Mean: 0.6, Bias: -0.5},
	}
	for fn, want := range map[coll.Func][2]float64{coll.AllGather: {0.15, 0.1}, coll.AllReduce: {0.1, 0.1},
		coll.Broadcast: {(0.6 + 0.9) / 13, (0.4 + 0.9) / 13}, coll.SendRecv: {0.1, 0.6}} {
		b := &bench{table: &table{fn: fn}}
		got, ok := b.recorded(of, 100, all)
		if !ok || math.Abs(got[0]-want[0]) > 1e-9 || math.Abs(got[1]-want[1]) > 1e-9 {
			t.Errorf("%v: %v %v, want %v", fn, got, ok, want)
		}
	}
	b := &bench{table: &table{fn: coll.AllReduce}}
	if _, ok := b.recorded(of, 101, all); ok {
		t.Error("a size that nothing is recorded of has an error")
	}
	if _, ok := b.recorded(of, 100, func(*gpu.Regime) bool { return false }); ok {
		t.Error("other nodes have an error")
	}
}

// TestNetworkThatIsNotModelledIsNotHeldAgainstTheMachine: alltoall through libfabric takes twice as long as
// simulated by all tables of it, so that twice is as expected, and a note says what that hides; over
// InfiniBand, where simulated times are near, it is slower.
func TestNetworkThatIsNotModelledIsNotHeldAgainstTheMachine(t *testing.T) {
	for class, want := range map[string]Verdict{"slingshot": AsExpected, "infiniband": Slower} {
		spec := scenario.Spec{Network: scenario.Network{Class: class}}
		spec.Machine.Nodes = []scenario.Nodes{{Topo: "hgx-a100-4", Count: 2}}
		r, err := New(t.Context(), Request{Spec: spec, NoSuspects: true, Options: options(),
			Files: []File{{"t.json", []byte(`{"name": "own", "collective": "alltoall",
			"nccl_version": "2.28.9", "system": {"gpu": "A100", "nodes": 2, "gpus_per_node": 4},
			"rows": [{"bytes": 134217728, "time_us": 1}]}`)}}})
		if err != nil {
			t.Fatal(err)
		}
		got := r.Again(func(z *Size) float64 { return 2 * z.Expected[1] })
		hides := strings.Contains(strings.Join(r.Notes, "\n"), "does not show")
		if got != want || hides != (want == AsExpected) {
			t.Errorf("%s: twice the simulated time is %s, notes %q", class, got, r.Notes)
		}
	}
}

// TestOldReleaseHasTheRulesOfTheOldest: a table of a release older than all rules is simulated by the oldest,
// one between two by the older of them.
func TestOldReleaseHasTheRulesOfTheOldest(t *testing.T) {
	for version, want := range map[string]string{"2.8.4": "2.21.5", "2.18 (directory name)": "2.21.5",
		"2.29.3": "2.29.2", "2.23.4 + aws-ofi-nccl 1.13.0": "2.23.4"} {
		r, err := New(t.Context(), Request{NoSuspects: true, Options: options(),
			Files: []File{{"t.json", []byte(`{"name": "own", "collective": "all_reduce", "nccl_version": "` +
				version + `", "system": {"gpu": "H100", "nodes": 1, "gpus_per_node": 2}, ` +
				`"rows": [{"bytes": 8, "time_us": 9}]}`)}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Site.Config.Rules.Version(); got != want {
			t.Errorf("%s has the rules of %s, want %s", version, got, want)
		}
	}
}
