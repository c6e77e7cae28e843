package job_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/workload"
)

// manyComms is a job of 512 ranks: 64 communicators of 8 within nodes and 8 of 64
// across them, all_reduces of both at once, so many calls in all.
func manyComms(t testing.TB, calls int) *workload.Program {
	var b strings.Builder
	text := func(f string, a ...any) { fmt.Fprintf(&b, f, a...) }
	text("workload 1\nranks 512\n")
	for n := range 64 {
		text("comm tp%d %d-%d kind=TP\n", n, 8*n, 8*n+7)
	}
	for r := range 8 {
		text("comm dp%d %d", r, r)
		for n := 1; n < 64; n++ {
			text(",%d", 8*n+r)
		}
		text(" kind=DP\n")
	}
	rounds := calls / 72
	for r := range 512 {
		text("list r%d %d\n", r, r)
		for i := range rounds {
			text("  call 0 tp%d all_reduce half sum %d\n  call 1 dp%d all_reduce half sum %d\n", r/8, 1<<22,
				r%8, 1<<20<<(i%2))
		}
	}
	p, err := workload.Parse(b.String(), "p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// BenchmarkManyCommunicators: 72 communicators on 512 ranks and 10,000 calls, from
// the program to its result.
func BenchmarkManyCommunicators(b *testing.B) {
	p := manyComms(b, 10000)
	b.ReportAllocs()
	for b.Loop() {
		m, _ := machine(b, "dgx-h100.xml", 64)
		r, err := m.Run(context.Background(), p, job.Options{})
		if err != nil {
			b.Fatal(err)
		}
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		b.ReportMetric(float64(r.Operations), "calls")
		b.ReportMetric(float64(mem.HeapSys>>20), "MB-heap")
	}
}
