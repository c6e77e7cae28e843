package nccltests

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// IterStats are the times of single iterations, of -I 1, in microseconds; the
// sums leave out the first Skipped (util.cu, computeIterStats).
type IterStats struct {
	Skipped                      int
	Min, Max, Avg, P50, P95, P99 float64
	Stdev                        float64
	Times                        []float64   // of all iterations, the slowest process's
	Processes                    [][]float64 // of each process, where there are several
}

// NewIterStats sums up iterations; the first skip of them count only as times.
// Percentiles are by nearest rank, the median the upper one.
func NewIterStats(times []float64, skip int, processes [][]float64) *IterStats {
	if len(times) == 0 {
		return nil
	}
	s := &IterStats{Skipped: skip, Times: times}
	if len(processes) > 1 {
		s.Processes = processes
	}
	sorted := slices.Clone(times[min(skip, len(times)-1):])
	slices.Sort(sorted)
	n := len(sorted)
	rank := func(percent int) float64 { return sorted[min(n-1, (n*percent+99)/100-1)] }
	s.Min, s.Max, s.P50, s.P95, s.P99 = sorted[0], sorted[n-1], sorted[n/2], rank(95), rank(99)
	for _, t := range sorted {
		s.Avg += t
	}
	s.Avg /= float64(n)
	for _, t := range sorted {
		s.Stdev += float64((t - s.Avg) * (t - s.Avg))
	}
	s.Stdev = math.Sqrt(s.Stdev / float64(n))
	return s
}

// cv is the standard deviation in percent of the mean.
func (s *IterStats) cv() float64 {
	if s.Avg <= 0 {
		return 0
	}
	return 100 * s.Stdev / s.Avg
}

// columns are the four that -I 1 adds to each half of a row.
func (s *IterStats) columns() string {
	var b strings.Builder
	for _, v := range []float64{s.Min, s.Max, s.P99, s.cv()} {
		fmt.Fprintf(&b, "  %7s", Float(v, 7))
	}
	return b.String()
}

// json is the value of out_of_place_per_iter and in_place_per_iter.
func (s *IterStats) json() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"skipped_iterations":%d`, s.Skipped)
	for _, kv := range []struct {
		key string
		v   float64
	}{{"min", s.Min}, {"max", s.Max}, {"avg", s.Avg}, {"p50", s.P50}, {"p95", s.P95}, {"p99", s.P99},
		{"stdev", s.Stdev}} {
		fmt.Fprintf(&b, `,"%s_us":%s`, kv.key, double(kv.v))
	}
	fmt.Fprintf(&b, `,"cv_pct":%s,"times_us":%s`, double(s.cv()), doubles(s.Times))
	if s.Processes != nil {
		lists := make([]string, len(s.Processes))
		for i, p := range s.Processes {
			lists[i] = doubles(p)
		}
		fmt.Fprintf(&b, `,"per_process_max_times_us":[%s]`, strings.Join(lists, ","))
	}
	b.WriteByte('}')
	return b.String()
}

func doubles(list []float64) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = double(v)
	}
	return "[" + strings.Join(out, ",") + "]"
}
