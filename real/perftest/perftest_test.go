package perftest

import (
	"strings"
	"testing"
	"time"
)

// TestColumns: head and rows are perftest's, so that its readers' eyes and
// scripts find their numbers.
func TestColumns(t *testing.T) {
	var b strings.Builder
	tab := Table{}
	b.WriteString(tab.Head(&Case{QPs: 2, TxDepth: 128}, "mlx5_0", "node1:18515"))
	measure := func(c Case) (*Figures, error) {
		if c.Latency {
			return &Figures{Iters: 4, Times: []time.Duration{1000, 2000, 3000, 4000}}, nil
		}
		return &Figures{Iters: c.Iters, Peak: 3 << 20, Average: 2 << 20, Rate: 2e6}, nil
	}
	for _, c := range []Case{{Op: "write", Size: 65536, Iters: 1000}, {Op: "read", Size: 2, Iters: 5}} {
		r, err := measureRow(c, measure)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(tab.Row(r))
		tab.Gbits = true
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	head := lines[len(lines)-3]
	// As ib_write_bw and ib_write_lat of perftest 24 print them.
	for _, want := range []string{
		" #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]",
		"    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% " +
			"percentile[usec]   99.9% percentile[usec]",
	} {
		if !strings.Contains(head, want) {
			t.Errorf("the head %q lacks %q", head, want)
		}
	}
	for i, want := range [][]string{
		{"write", "65536", "1000", "3.00", "2.00", "2.000000", "0.0021", "1.00", "4.00", "3.00", "2.50",
			"1.12", "4.00", "4.00"},
		{"read", "2", "5", "0.03", "0.02", "2.000000", "0.0021", "1.00", "4.00", "3.00", "2.50", "1.12",
			"4.00", "4.00"},
	} {
		if got := strings.Fields(lines[len(lines)-2+i]); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("row %d is %q, want %q", i, got, want)
		}
	}
}

// TestRemarks distinguishes a wait for clear-to-sends from a busy host.
func TestRemarks(t *testing.T) {
	row := func(gbps float64, each time.Duration) *Row {
		return &Row{Case{Size: 65536}, &Figures{Average: gbps * 1e9}, &Figures{Times: []time.Duration{each}}}
	}
	for _, c := range []struct {
		nccl *Row
		want string
	}{
		{row(47, 8*time.Microsecond), "65536 bytes: nccl reaches 98 % of write"},
		{row(24, 20*time.Microsecond),
			"50 % of write; 8 messages of 20.00 usec in flight allow 26.2144 GB/sec, so the round trip"},
		{row(6, 8*time.Microsecond),
			"12 % of write; 8 messages of 8.00 usec in flight allow 65.5360 GB/sec: the rest is not spent"},
	} {
		if got := remark(row(48, time.Microsecond), c.nccl); !strings.Contains(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := remark(row(48, time.Microsecond), nil); got != "" {
		t.Errorf("without nccl: %q", got)
	}
}
