package scenario

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
)

// TestWindowsSlowAndTraced: a slow rank's kernel over symmetric windows holds up all, down
// to no more than its factor; a rank that is down is refused by type; a timeline has the
// kernel on every rank.
func TestWindowsSlowAndTraced(t *testing.T) {
	topo, err := os.ReadFile(filepath.Join(golden.Root(t, "testdata", "topos"), "h200x4-4.xml"))
	if err != nil {
		t.Fatal(err)
	}
	out := &buffer{}
	opt := Options{Files: fstest.MapFS{"m.xml": {Data: topo}}, Settings: config.Sources{NoEnv: true},
		Create: func(string) (File, error) { return out, nil }}
	us := func(fault, trace string) (float64, error) {
		spec := Spec{Machine: Machine{Nodes: []Nodes{{Topo: "m.xml"}}, Multicast: "off"},
			Engine:   Engine{Launch: "graph"},
			Workload: Workload{Op: "all_reduce", Sizes: []string{"1M"}, Buffers: "windows"},
			Outputs:  Outputs{Trace: trace}}
		if fault != "" {
			spec.Network.Faults = []string{fault}
		}
		r, err := Run(context.Background(), spec, opt)
		if err != nil {
			return 0, err
		}
		return r.Rows[0].Out.Time.Micros(), nil
	}
	well, err := us("", "t.json")
	if err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.Contains(s, "AllReduce_RSxLD_AGxST") || !strings.Contains(s, "rank 3") {
		t.Errorf("the timeline lacks a kernel: %.300s", s)
	}
	if slow, err := us("rank=2:slow=2", ""); err != nil || slow < 1.2*well || slow > 2*well {
		t.Errorf("a rank twice as slow: %g us, well %g: %v", slow, well, err)
	}
	var missing *exec.NotImplementedError
	if _, err := us("rank=2:down", ""); !errors.As(err, &missing) {
		t.Errorf("a rank that is down: %v", err)
	}
}
