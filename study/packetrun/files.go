package packetrun

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/packet"
)

// WriteCSV writes a row a flow. A flow that did not end has no end, completion time and slowdown.
func (x *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"id", "src", "dst", "bytes", "start_ns", "end_ns", "fct_ns", "ideal_fct_ns",
		"slowdown"})
	whole := func(v int64) string { return strconv.FormatInt(v, 10) }
	for i := range x.Flows {
		f := &x.Flows[i]
		row := []string{strconv.Itoa(i), whole(int64(f.Src)), whole(int64(f.Dst)), whole(f.Bytes),
			whole(f.StartNs), "", "", whole(f.IdealNs), ""}
		if f.FctNs != nil {
			row[5], row[6] = whole(f.StartNs+*f.FctNs), whole(*f.FctNs)
			row[8] = strconv.FormatFloat(f.Slowdown, 'f', 4, 64)
		}
		_ = c.Write(row)
	}
	c.Flush()
	return c.Error()
}

// Files of the HPCC simulator on ns-3, in the order in which WriteFile knows them.
const (
	FCT    = "fct.txt"
	Queues = "qlen.txt"
	Pauses = "pfc.txt"
)

// FileNames returns the files of the HPCC simulator that WriteFile writes.
func FileNames() []string { return []string{FCT, Queues, Pauses} }

// HasFiles returns why a run has no files of the HPCC simulator; nil: it has.
func (x *Report) HasFiles() error {
	if x.raw == nil {
		return fail.NotYet("its engine keeps no queues over time",
			"fct.txt, qlen.txt and pfc.txt of htsim's UEC")
	}
	return nil
}

// WriteFile writes one of FileNames in the columns of the HPCC simulator (simulation/scratch/third.cc of
// commit 9f4be2a). Times are simulated time in ns.
func (x *Report) WriteFile(name string, to io.Writer) error {
	w := bufio.NewWriter(to)
	switch name {
	case FCT:
		x.writeFCT(w)
	case Queues:
		x.writeQueues(w)
	case Pauses:
		x.writePauses(w)
	}
	return w.Flush()
}

// address returns the IPv4 address of a node (third.cc:155).
func address(node int32) uint32 {
	return 0x0b000001 + uint32(node/256)<<16 + uint32(node%256)<<8
}

// writeFCT writes flows in the order in which they ended (qp_finish, third.cc:169): source, destination,
// source port, destination port, bytes, start, completion time and ideal completion time.
func (x *Report) writeFCT(w io.Writer) {
	r := x.raw.result.Flows
	var ended []int
	for i := range r {
		if r[i].Done {
			ended = append(ended, i)
		}
	}
	slices.SortStableFunc(ended, func(a, b int) int { return cmp.Compare(r[a].End, r[b].End) })
	for _, i := range ended {
		f := &x.raw.flows[i]
		fmt.Fprintf(w, "%08x %08x %d %d %d %d %d %d\n", address(f.Src), address(f.Dst), r[i].SrcPort,
			f.DstPort,
			f.Bytes, int64(r[i].Start)/nanosecond, *x.Flows[i].FctNs, x.Flows[i].IdealNs)
	}
}

// ports numbers the ports of nodes, from 1, in the order of cables, as ns-3 numbers devices behind the
// loopback. By link: 2·cable at its end A, 2·cable+1 at B.
func ports(n *packet.Network) []int {
	out, used := make([]int, 2*len(n.Cables)), make([]int, n.Nodes)
	for i, c := range n.Cables {
		for k, v := range []int32{c.A, c.B} {
			used[v]++
			out[2*i+k] = used[v]
		}
	}
	return out
}

// writeQueues writes a line a port of a switch (monitor_buffer, third.cc:193-217): switch, port, and how many
// samples found 0 to 999 bytes of data waiting, 1,000 to 1,999, and so on. Samples are from the first start
// of a flow to the end.
func (x *Report) writeQueues(w io.Writer) {
	n, s, every := x.raw.net, x.raw.result.Series, int64(x.raw.every)
	first := x.raw.first
	counts, last, bytes := make([][]int64, 2*len(n.Cables)), make([]int64, 2*len(n.Cables)),
		make([]int64, 2*len(n.Cables))
	until := func(link int32, at int64) { // samples before a time see the last queue length
		k := (max(at-first, 0) + every - 1) / every
		kb := int(bytes[link] / 1000)
		for len(counts[link]) <= kb {
			counts[link] = append(counts[link], 0)
		}
		counts[link][kb] += k - last[link]
		last[link] = k
	}
	for _, q := range s.Queues {
		until(q.Link, int64(q.At))
		bytes[q.Link] = q.Bytes
	}
	fmt.Fprintf(w, "time: %d\n", int64(s.End)/nanosecond)
	names := ports(n)
	var order []int32
	from := func(link int32) int32 {
		if c := n.Cables[link/2]; link%2 == 0 {
			return c.A
		} else {
			return c.B
		}
	}
	for i := range counts {
		if n.Switch[from(int32(i))] {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(from(a), from(b)), cmp.Compare(names[a], names[b]))
	})
	for _, i := range order {
		until(i, int64(s.End)+1)
		fmt.Fprintf(w, "%d %d", from(i), names[i])
		for _, k := range counts[i] {
			fmt.Fprintf(w, " %d", k)
		}
		fmt.Fprintln(w)
	}
}

// writePauses writes a line a PFC frame that arrived (get_pfc, third.cc:178): time, node, whether it is a
// switch, port, and 1 for PAUSE or 0 for RESUME.
func (x *Report) writePauses(w io.Writer) {
	n := x.raw.net
	names := ports(n)
	for _, p := range x.raw.result.Series.Pauses {
		c := n.Cables[p.Link/2]
		node, kind, what := c.A, 0, 0
		if p.Link%2 == 1 {
			node = c.B
		}
		if n.Switch[node] {
			kind = 1
		}
		if p.Pause {
			what = 1
		}
		fmt.Fprintf(w, "%d %d %d %d %d\n", int64(p.At)/nanosecond, node, kind, names[p.Link], what)
	}
}
