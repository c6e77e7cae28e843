package perftest

import (
	"fmt"
	"strings"
	"time"
)

// Table formats perftest's tables, columns of bandwidth before those of latency.
type Table struct {
	Gbits bool // bandwidths in Gb/sec instead of MiB/sec
}

// Ruler is the line printed above the head, below it and below the rows.
var Ruler = strings.Repeat("-", 150)

// Head returns the header of the rows.
func (t Table) Head(like *Case, from, to string) string {
	dir, unit := "one direction", "MiB/sec"
	if like.Bidirectional {
		dir = "both directions"
	}
	if t.Gbits {
		unit = "Gb/sec"
	}
	return fmt.Sprintf("%s\n                    RDMA and NCCL's pattern, %s\n Device         : %s -> %s\n"+
		" Number of qps  : %d\n TX depth       : %d (nccl: %d)\n%s\n",
		Ruler, dir, from, to, like.QPs, like.TxDepth, steps, Ruler) +
		fmt.Sprintf(" %-5s  #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]   BW "+
			"average[GB/sec]", "test", unit, unit) +
		"    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% " +
		"percentile[usec]   99.9% percentile[usec]\n"
}

// Row returns the line of a measured case.
func (t Table) Row(r *Row) string {
	bw, lat := r.Bandwidth, r.Latency
	unit := 1.0 / (1 << 20)
	if t.Gbits {
		unit = 8e-9
	}
	mean, stdev := lat.Mean()
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	return fmt.Sprintf(" %-5s  %-9d  %-13d  %-16.2f  %-18.2f %-15.6f %-18.4f", r.Case.Op, r.Case.Size,
		bw.Iters, bw.Peak*unit, bw.Average*unit, bw.Rate/1e6, bw.Average/1e9) +
		fmt.Sprintf("    %-13.2f  %-11.2f  %-15.2f    %-11.2f    %-13.2f   %-20.2f   %.2f\n",
			us(lat.Times[0]), us(lat.Times[len(lat.Times)-1]),
			us(lat.Typical()), us(mean), us(stdev), us(lat.Percentile(99)), us(lat.Percentile(99.9)))
}
