package advise

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/fabric"
)

// hashedNetwork is a ring of eight GPUs over a leaf-spine network of 8:1.
func hashedNetwork(t *testing.T) Request {
	t.Helper()
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: 4, Nets: 8, Gbit: 400, PerLeaf: 2,
		Oversub: 8})
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"net.json": {Data: n.Format()}}
	return Request{Options: scenario.Options{Files: fs.FS(files), Settings: config.Sources{NoEnv: true}},
		Spec: scenario.Spec{
			Machine:  scenario.Machine{GPUs: 2, Nodes: []scenario.Nodes{{Topo: "dgx-h100", Count: 4}}},
			NCCL:     scenario.NCCL{Env: map[string]string{"NCCL_ALGO": "Ring"}},
			Network:  scenario.Network{Fabric: "net.json"},
			Workload: scenario.Workload{Op: "all_reduce", Sizes: []string{"16M"}}, Engine: scenario.Engine{
				Launch: "graph", Jitter: "off"}}}
}

// Over hashed routes queue pairs that split messages and adaptive routing are tried first,
// said as soon as they are simulated, and advised where they gain over the median draw.
func TestQueuePairsAreAdvisedOverHashedRoutes(t *testing.T) {
	q := hashedNetwork(t)
	var found []string
	q.Found = func(f Found) { found = append(found, f.Line) }
	r, err := New(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	x := &r.Rows[0]
	if x.LeastUs <= 0 || x.Us < x.LeastUs || x.MostUs < x.Us || x.MostUs < 1.1*x.LeastUs {
		t.Fatalf("as it is: %+v, want a band of draws", x)
	}
	for _, want := range []string{"adaptive routing on the switches",
		"NCCL_IB_QPS_PER_CONNECTION=8 NCCL_IB_SPLIT_DATA_ON_QPS=1"} {
		if !slices.ContainsFunc(found[:min(len(found), 7)], func(l string) bool {
			return strings.Contains(l, want)
		}) {
			t.Errorf("%s is not among the first that gain: %v", want, found)
		}
	}
	for _, want := range []string{"routing", "NCCL_IB_QPS_PER_CONNECTION"} {
		if !slices.ContainsFunc(r.Advice, func(a Advice) bool {
			return strings.HasPrefix(a.Setting, want) && a.Gain > 1.1
		}) {
			t.Errorf("no advice of %s: %+v", want, r.Advice)
		}
	}
	if r.Untried != 0 || !strings.Contains(r.Text(), "routes are hashed; now is the median draw") {
		t.Errorf("%d untried\n%s", r.Untried, r.Text())
	}
}

// Settings are tried within a time; those left out are counted.
func TestSettingsEndWithTheirTime(t *testing.T) {
	q := hashedNetwork(t)
	q.Within = func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	}
	r, err := New(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	if r.Tried != 0 || r.Untried < 20 || len(r.Advice) != 0 || len(r.Refused) != 0 ||
		!strings.Contains(r.Text(), "--max-time 0 tries all") {
		t.Errorf("tried %d, untried %d, refused %d\n%s", r.Tried, r.Untried, len(r.Refused), r.Text())
	}
}
