package tap_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/tap"
	"github.com/simccl/simccl/sim/wire/ideal"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
)

// broadcast is 8 bytes from rank 0 to rank 1 over LL.
const broadcast = `{"scenario": 1,
  "machine": {"nodes": [{"topo": "h200x4-4.xml"}], "gpus": 2, "class": "./round.json"},
  "nccl": {"env": {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL", "NCCL_MAX_NCHANNELS": "1"}},
  "workload": {"op": "broadcast", "sizes": ["8"]},
  "engine": {"launch": "graph", "fold": "off"}}`

// slices simulates so many kernels in a row and lists the slices of the trace.
func slices(t *testing.T, kernels int, detail nccl.Detail) (out []string) {
	t.Helper()
	r, o := site.Plan(t, broadcast)
	e := engine.New(&engine.Options{Class: r.Site.Class(), Systems: r.Site.Comm.Systems(), Model: ideal.New(),
		Kernels: kernels}, o.Plan)
	if err := e.LayAll(e.Jobs[0]); err != nil {
		t.Fatal(err)
	}
	e.LayHeads()
	e.Wire.Seal()
	var m trace.Memory
	tr := tap.New(e, &m, nccl.Options{Detail: detail})
	e.Start()
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	tr.Finish(&exec.Result{})
	for i := range m.Events {
		if ev := &m.Events[i]; ev.Phase == trace.Slice && (ev.Cat == "GPU" || ev.Cat == "P2P_XFER") {
			out = append(out, fmt.Sprintf("rank %d %s %.1f-%.1f", m.Tracks[ev.Track].Process-nccl.RankPID,
				ev.Name, ev.Start.Micros(), (ev.Start+ev.Dur).Micros()))
		}
	}
	return out
}

// TestTraceOfOneConnection: slices come as they end for the kernel that they are of.
// Rank 0's send lasts until rank 1 can read it, beyond the kernel; rank 1 waits for
// it from the start of its own.
func TestTraceOfOneConnection(t *testing.T) {
	got := strings.Join(slices(t, 1, nccl.DetailStep), "\n")
	want := strings.TrimSpace(`
rank 0 SendWait 3.0-3.9
rank 0 KernelCh 3.0-3.3
rank 1 RecvWait 3.0-4.2
rank 1 KernelCh 3.0-4.2
`)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTraceBeginsWithTheLastOperation: of several kernels in a row the last is
// written, and a trace of less detail has no steps.
func TestTraceBeginsWithTheLastOperation(t *testing.T) {
	if got := strings.Join(slices(t, 3, nccl.DetailChannel), ", "); strings.Count(got, "KernelCh") != 2 ||
		strings.Contains(got, "Wait") {
		t.Errorf("%s; want the two slices of one kernel", got)
	}
}
