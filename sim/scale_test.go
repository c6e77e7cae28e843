package sim_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

const scaleHead = "# Time and memory of large communicators\n\n" +
	"Written by `make scale` on a shared machine of two cores; do not edit. One all_reduce of 1 GiB on DGX H100s, one core. *Set up*\n" +
	"joins the communicator and chooses; *run* plans and simulates; *heap* is what the Go heap holds at the end of the run.\n\n" +
	"Rings are folded: equal nodes and channels are simulated once, bit for bit what all ranks would do (sim/fold.go; tested to 256\n" +
	"ranks) where chunks and channels are alike, and close where the last chunks differ (`fold`). Trees beyond 512 ranks are reduced to\n" +
	"their longest path on one channel (`path`, sim/spine.go): within 10 % of the full run at 1 GiB where that was compared (32 and 128\n" +
	"ranks), and up to 1.6 times too slow where a pipeline of few chunks fills (NVLSTree of 64 MiB).\n\n" +
	"| ranks | multicast | asked | algorithm | how | simulated | events | set up | run | heap |\n|---|---|---|---|---|---|---|---|---|---|\n"

// TestScalePage writes docs/SCALE.md.
func TestScalePage(t *testing.T) {
	if os.Getenv("SIMCCL_SCALE") == "" {
		t.Skip("measures time on a quiet machine: make scale")
	}
	var b strings.Builder
	b.WriteString(scaleHead)
	for _, asked := range []string{"Ring", ""} {
		for _, name := range []string{"dgx-h100.n2", "dgx-h100+nvls.n2"} {
			if asked == "Ring" && name != "dgx-h100.n2" {
				continue
			}
			for _, n := range []int{128, 2048, 12800} {
				b.WriteString(scaleRow(t, name, asked, n))
			}
		}
	}
	if err := os.WriteFile(golden.Root(t, "docs", "SCALE.md"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func scaleRow(t *testing.T, name, asked string, n int) string {
	var p comm.Params
	words := [2]string{"off", "default"}
	if asked != "" {
		p.Tuning.Algo = units.Some(asked)
		words[1] = "NCCL_ALGO=" + asked
	}
	if strings.Contains(name, "nvls") {
		words[0] = "on"
	}
	nodes(t, name, 1, comm.Params{}) // so that reading the reference is not timed
	begin := time.Now()
	c, systems := nodes(t, name, n, p)
	joined := time.Now()
	req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 1 << 28, Type: coll.Float32})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := simulatePlan(t, c, sim.Config{Systems: systems}, req, trace.Discard)
	done := time.Now()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	how := "fold"
	if req.Algo != coll.Ring {
		how = "path"
	}
	return fmt.Sprintf("| %d | %s | %s | %v/%v | %s | %.3f ms | %d | %.2f s | %.2f s | %d MB |\n", 8*n, words[0], words[1], req.Algo, req.Proto, how,
		r.Elapsed.Micros()/1000, r.Events, joined.Sub(begin).Seconds(), done.Sub(joined).Seconds(), m.HeapSys>>20)
}
