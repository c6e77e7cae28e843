package replay_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
)

// large is the text of a job: tensor parallel groups of 8, data parallel groups across
// them, on each rank so many launches of the host, computations and calls.
func large(w io.Writer, ranks, steps int) {
	const tp = 8
	fmt.Fprintf(w, "workload 1\nranks %d\n", ranks)
	for n := range ranks / tp {
		fmt.Fprintf(w, "comm tp%d %d-%d kind=TP\n", n, n*tp, n*tp+tp-1)
	}
	for r := 0; ranks > tp && r < tp; r++ {
		fmt.Fprintf(w, "comm dp%d %d", r, r)
		for n := 1; n < ranks/tp; n++ {
			fmt.Fprintf(w, ",%d", r+n*tp)
		}
		fmt.Fprintln(w, " kind=DP")
	}
	fmt.Fprintln(w, "work 1 gemm blocks=512 persm=1")
	for rank := range ranks {
		fmt.Fprintf(w, "list r%d %d\n", rank, rank)
		for i := 0; i+5 <= steps; i += 5 {
			k := i / 5
			fmt.Fprintf(w, "  compute h0 5000000\n  compute 0 %d000000 work=1 after=%d\n"+
				"  compute 0 %d000000 work=1 after=%d\n"+
				"  call 0 tp%d all_reduce bfloat16 sum 4194304 after=%d\n", 100+(rank*7+k)%13, i, 80+k%5, i,
				rank/tp, i)
			if ranks > tp && k%4 == 0 {
				fmt.Fprintf(w, "  call 1 dp%d all_reduce bfloat16 sum 1048576 after=%d\n", rank%tp, i+2)
			} else {
				fmt.Fprintf(w, "  compute 0 20000000 work=1 after=%d\n", i)
			}
		}
	}
}

// BenchmarkRanks reads and replays a job, share: what simccl replay does but for
// printing.
func BenchmarkRanks(b *testing.B) {
	for _, c := range [][2]int{{8, 10000}, {1024, 5000}} {
		b.Run(fmt.Sprintf("%dx%d", c[0], c[1]), func(b *testing.B) {
			for b.Loop() {
				in, out := io.Pipe()
				go func() { large(out, c[0], c[1]); _ = out.Close() }()
				p, err := workload.Read(in, "large")
				if err != nil {
					b.Fatal(err)
				}
				spec := scenario.Spec{
					Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "dgx-h100", Count: c[0] / 8}}}}
				site, err := scenario.Load(&spec, scenario.Options{Files: osFS{}})
				if err != nil {
					b.Fatal(err)
				}
				m, err := site.Session(&spec)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := replay.Run(b.Context(), &load.Job{Program: p}, p, m,
					replay.Options{Host: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
