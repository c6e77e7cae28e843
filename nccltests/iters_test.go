package nccltests

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// perIterTable is what nccl-tests 2.19.6 prints with -I 1 -K 1 -S 1, by its
// format strings (util.cu:634, :746, writePerIterReport, writeTimestamp).
const perIterTable = `# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1024 maxBytes 1024 step: 1048576(bytes) warmup iters: 1 iters: 4 agg iters: 1 validation: 1 graph: 0 unalign: 0
# Per-Iteration Report: CUDA event timing; i_* uses max over process rows; summary skips first 1 iterations 
#
# Using devices
#
#                                                                 out-of-place (+ per-iteration)                                in-place (+ per-iteration)
#       size         count      type   redop    root     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%           timestamp
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)     (us)     (us)      (%)     (us)  (GB/s)  (GB/s)             (us)     (us)     (us)      (%)   %Y-%m-%d %H:%M:%S
        1024           256     float     sum      -1     7.50    0.14    0.14       0     6.00    12.00    12.00    27.22     7.00    0.15    0.15    N/A     7.00     7.00     7.00     0.00  2026-11-22 01:02:03
`

func perIterRun() (Config, Row) {
	c := Config{Program: "all_reduce_perf", NCCLHeaders: 22809, NCCLLibrary: 22809, Threads: 1, GPUs: 2,
		MinBytes: 1024, MaxBytes: 1024,
		StepBytes: 1 << 20, Warmup: 1, Iters: 4, AggIters: 1, Check: 1, PerIter: true, PerIterSkip: 1,
		Timestamps: true}
	r := Row{Size: 1024, Count: 256, Type: "float", RedOp: "sum", Root: -1, Stamp: "2026-11-22 01:02:03",
		Out: Measure{TimeUs: 7.5, AlgBW: .14, BusBW: .14, Checked: true,
			Iters: NewIterStats([]float64{90, 12, 9, 6}, 1, [][]float64{{90, 1, 9, 6}, {2, 12, 3, 6}})},
		In: Measure{TimeUs: 7, AlgBW: .15, BusBW: .15, Iters: NewIterStats([]float64{7, 7, 7, 7}, 1, nil)}}
	return c, r
}

func TestPerIterationTable(t *testing.T) {
	c, r := perIterRun()
	var out bytes.Buffer
	table := NewTable(&out)
	table.Start(&c, nil)
	table.Row(&r)
	if out.String() != perIterTable {
		t.Errorf("got\n%swant\n%s", out.String(), perIterTable)
	}
	p, err := one([]byte(perIterTable))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Rows) != 1 || p.Rows[0].In.TimeUs != 7 || p.Rows[0].In.Checked || p.Rows[0].Out.TimeUs != 7.5 ||
		!p.Config.PerIter || p.Config.PerIterSkip != 1 {
		t.Errorf("read again: %+v", p)
	}
}

func TestPerIterationJSON(t *testing.T) {
	c, r := perIterRun()
	var out bytes.Buffer
	if err := WriteJSON(&out, &Report{Config: c, Rows: []Row{r}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"per_iter_timing":"true","per_iter_skip":1,`,
		`"out_of_place_per_iter":{"skipped_iterations":1,"min_us":6.000000,"max_us":12.000000,"avg_us":9.000000,"p50_us":9.000000,"p95_us":12.000000,"p99_us":12.000000,`,
		`"times_us":[90.000000,12.000000,9.000000,6.000000],"per_process_max_times_us":[[90.000000,1.000000,9.000000,6.000000],[2.000000,12.000000,3.000000,6.000000]]},"in_place":{`,
		`"in_place_per_iter":{"skipped_iterations":1,"min_us":7.000000,"max_us":7.000000,"avg_us":7.000000,"p50_us":7.000000,"p95_us":7.000000,"p99_us":7.000000,"stdev_us":0.000000,"cv_pct":0.000000,"times_us":[7.000000,7.000000,7.000000,7.000000]},"actual_iterations":4`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	if !json.Valid(out.Bytes()) {
		t.Errorf("no JSON: %s", out.String())
	}
}

// Percentiles are by nearest rank: with 100 and more iterations the 99th is not
// the largest.
func TestPercentilesAreByNearestRank(t *testing.T) {
	for _, c := range []struct {
		n             int
		p50, p95, p99 float64
	}{{1, 1, 1, 1}, {2, 2, 2, 2}, {20, 11, 19, 20}, {99, 50, 95, 99}, {100, 51, 95, 99},
		{200, 101, 190, 198}} {
		var times []float64
		for i := range c.n {
			times = append(times, float64((i*7)%c.n+1)) // 7 and n share no factor: each once
		}
		s := NewIterStats(times, 0, nil)
		mean := float64(c.n+1) / 2
		stdev := math.Sqrt(float64(c.n*c.n-1) / 12) // of 1 … n
		if s.P50 != c.p50 || s.P95 != c.p95 || s.P99 != c.p99 || s.Min != 1 || s.Max != float64(c.n) ||
			s.Avg != mean || math.Abs(s.Stdev-stdev) > 1e-9 {
			t.Errorf("%d iterations: %+v", c.n, *s)
		}
	}
}

// The line of -M 1, as writeMemInfo prints it before the last two lines.
func TestMemoryLine(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(&out)
	s := Summary{MinBW: -1, Memory: []MemoryUse{{"Initialization", 614 << 20}, {"User-Allocated", 2 << 30},
		{"Collective", 0}}}
	if err := table.Finish(&Config{Program: "all_reduce_perf"}, &s); err != nil {
		t.Fatal(err)
	}
	const want = `# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0 
#
# Collective test concluded: all_reduce_perf
# GPU memory usage     : Initialization 614 MB | User-Allocated 2.00 GB | Collective 0.00 B | Total  2.60 GB
#

`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	for bytes, want := range map[int64]string{1023: "1023 B", 1024: "1.00 KB", 10 << 10: "10.0 KB",
		100 << 10: "100 KB", -3 << 20: "-3.00 MB"} {
		if got := amount(bytes); got != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
}
