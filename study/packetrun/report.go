package packetrun

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/units"
)

// Flow is a flow of a Report. FctNs is from its start to its last
// acknowledgement at the sender; nil where the flow did not end.
type Flow struct {
	Src     int32  `json:"src"`
	Dst     int32  `json:"dst"`
	SrcPort uint16 `json:"sport"`
	Bytes   int64  `json:"bytes"`
	StartNs int64  `json:"startNs"`
	FctNs   *int64 `json:"fctNs"`
	// IdealNs is the time that it would take alone; Slowdown is by how much it took longer, at least 1, and
	// 0 for a flow that did not end.
	IdealNs  int64   `json:"idealNs"`
	Slowdown float64 `json:"slowdown,omitempty"`
}

// Report is the result of a run. Times are in ns; StartNs counts from the first start, MakespanNs is the time
// from there to the last acknowledgement.
type Report struct {
	MakespanNs     int64    `json:"makespanNs"`
	Flows          []Flow   `json:"flows"`
	PeakQueueBytes int64    `json:"peakQueueBytes"`
	PeakLink       [2]int32 `json:"peakLink"` // from switch, to node
	Pauses         int64    `json:"pauses"`
	Marks          int64    `json:"marks"`
	Drops          int64    `json:"drops"`
	Lost           int64    `json:"lost"`
	Trims          int64    `json:"trims"`
	Retransmitted  int64    `json:"retransmitted"`
	DataPacketHops int64    `json:"dataPacketHops"`
	Seed           uint64   `json:"seed"`
	Model          string   `json:"model"` // whose sizes, rules and congestion control
	Timeouts       int64    `json:"timeouts,omitempty"`
	Watchdogs      int64    `json:"watchdogs,omitempty"` // queues that watchdogs dropped
	// Deadlocks lists cycles of nodes that pause each other, also those that resolved.
	Deadlocks  []Deadlock `json:"deadlocks,omitempty"`
	Blocked    []Blocked  `json:"blocked,omitempty"` // head-of-line blocking, the longest first
	Unfinished string     `json:"unfinished,omitempty"`
	CPUSeconds *float64   `json:"cpuSeconds,omitempty"`
	Slowdown   *Slowdown  `json:"slowdown,omitempty"` // of the flows that ended
	Line       *Line      `json:"line,omitempty"`
	Series     *Series    `json:"series,omitempty"` // with an interval
	// Nodes are the names of nodes by number, where they have some.
	Nodes []string `json:"nodes,omitempty"`
	raw   *raw
}

// Line is the busiest direction of a cable: the share of its rate used for data, headers included, from the
// first start to the last acknowledgement. It is absent if some flow did not end.
type Line struct {
	Link [2]int32 `json:"link"` // from, to
	Rate int64    `json:"bitsPerSecond"`
	Data int64    `json:"dataBytes"`
	Use  float64  `json:"use"`
	// Hosts: lines of hosts alone were looked at, and frames that were sent again do not count.
	Hosts bool `json:"hostsOnly,omitempty"`
}

// raw is a run of package packet before it is summarised.
type raw struct {
	net    *packet.Network
	flows  []packet.Flow
	result *packet.Result
	every  units.Time // between samples; 0: none
	first  int64      // the first start of a flow, ps
}

// Deadlock is a cycle of nodes each of which is paused by the next, and the time from the first start at
// which it was first seen.
type Deadlock struct {
	AtNs  int64   `json:"atNs"`
	Nodes []int32 `json:"nodes"`
}

// Blocked is a flow that waited on a link that was paused for the sake of a port
// that the flow does not use.
type Blocked struct {
	Flow   int32    `json:"flow"`
	Link   [2]int32 `json:"link"`   // from, to
	Behind [2]int32 `json:"behind"` // the port of Link's second node
	TimeNs int64    `json:"timeNs"`
}

// mostBlocked is the number of blocked ports that a report lists.
const mostBlocked = 20

const nanosecond = int64(units.Nanosecond)

func report(n *packet.Network, flows []packet.Flow, c *packet.Config, carried int,
	r *packet.Result) *Report {
	x := &Report{Flows: make([]Flow, len(flows)), PeakQueueBytes: r.PeakQueue, PeakLink: r.PeakLink,
		Pauses: r.Pauses, Marks: r.Marks, Drops: r.Drops, Trims: r.Trims,
		Lost: r.Lost, Retransmitted: r.Retransmitted, DataPacketHops: r.DataPacketHops, Timeouts: r.Timeouts,
		Watchdogs: r.Watchdogs}
	first, last := int64(1<<63-1), int64(0)
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Begun() {
			first = min(first, int64(f.Start))
		}
	}
	alone := newIdeals(n, c.Frames.Payload, c.Frames.Header-carried)
	for i := range flows {
		f, got := &flows[i], &r.Flows[i]
		y := Flow{Src: f.Src, Dst: f.Dst, SrcPort: got.SrcPort, Bytes: f.Bytes,
			IdealNs: alone.of(f.Src, f.Dst, f.Bytes)}
		if got.Begun() {
			y.StartNs = (int64(got.Start) - first) / nanosecond
		}
		if got.Done {
			fct := int64(got.End-got.Start) / nanosecond
			y.FctNs = &fct
			last = max(last, int64(got.End)-first)
			y.Slowdown = y.slowdownOf()
		}
		x.Flows[i] = y
	}
	x.MakespanNs = last / nanosecond
	x.raw = &raw{n, flows, r, c.Every, first}
	x.Slowdown = slowdown(x.Flows)
	if x.Line = line(&r.Busiest, units.Time(last)); r.Stall != nil {
		x.Line = nil // of a run that does not go on a share of its time says nothing
	}
	x.Series = x.raw.series()
	if r.Stall != nil {
		x.Unfinished = r.Stall.String()
	}
	for _, d := range r.Deadlocks {
		x.Deadlocks = append(x.Deadlocks, Deadlock{(int64(d.At) - first) / nanosecond, d.Nodes})
	}
	for _, b := range r.Blocked[:min(len(r.Blocked), mostBlocked)] {
		x.Blocked = append(x.Blocked, Blocked{b.Flow, b.Link, b.Behind, int64(b.Time) / nanosecond})
	}
	return x
}

// line returns the busiest line of a run; nil: nothing was sent.
func line(b *packet.Busy, span units.Time) *Line {
	if b.Data == 0 || span == 0 {
		return nil
	}
	return &Line{Link: b.Link, Rate: b.Rate, Data: b.Data,
		Use: float64(b.Lasts) / float64(span)}
}

// Text formats the report.
func (x *Report) Text() string {
	var b strings.Builder
	fct := []int64{}
	for i := range x.Flows {
		if f := x.Flows[i].FctNs; f != nil {
			fct = append(fct, *f)
		}
	}
	slices.Sort(fct)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-18s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("model", "%s, seed %d", x.Model, x.Seed)
	row("flows", "%d, %d ended", len(x.Flows), len(fct))
	row("makespan", "%s us", micros(x.MakespanNs))
	if n := len(fct); n > 0 {
		row("completion", "min %s, median %s, p99 %s, max %s us", micros(fct[0]), micros(fct[n/2]),
			micros(fct[min(n-1, n*99/100)]), micros(fct[n-1]))
	}
	if x.Slowdown != nil {
		row("slowdown", "%v", &x.Slowdown.Quantiles)
	}
	if l := x.Line; l != nil {
		of := "line"
		if l.Hosts {
			of = "host's line"
		}
		row("line's use", "%.1f %% of the busiest %s, %s > %s at %g Gb/s, carried data", 100*l.Use, of,
			x.Node(l.Link[0]), x.Node(l.Link[1]), float64(l.Rate)/1e9)
	}
	row("deepest queue", "%d bytes, switch %s to node %s", x.PeakQueueBytes, x.Node(x.PeakLink[0]),
		x.Node(x.PeakLink[1]))
	row("pause frames", "%d", x.Pauses)
	row("ECN-marked frames", "%d", x.Marks)
	row("losses", "%d lost on cables, %d dropped for lack of buffer, %d trimmed; %d frames retransmitted",
		x.Lost, x.Drops, x.Trims, x.Retransmitted)
	row("data-packet-hops", "%d", x.DataPacketHops)
	if x.CPUSeconds != nil {
		row("CPU time", "%.3f s, %.2f M data-packet-hops/s", *x.CPUSeconds,
			float64(x.DataPacketHops)/1e6/max(*x.CPUSeconds, 1e-6))
	}
	for _, d := range x.Deadlocks {
		row("deadlock", "at %s us: nodes %v pause each other in a cycle", micros(d.AtNs), d.Nodes)
	}
	if x.Watchdogs > 0 {
		row("watchdogs", "%d queues dropped", x.Watchdogs)
	}
	for _, v := range x.Blocked[:min(len(x.Blocked), 3)] {
		row("HOL blocking", "flow %d (%s > %s) waited %s us on paused link %s > %s for the queue of port "+
			"%s > %s, which it does not use", v.Flow, x.Node(x.Flows[v.Flow].Src),
			x.Node(x.Flows[v.Flow].Dst),
			micros(v.TimeNs), x.Node(v.Link[0]), x.Node(v.Link[1]), x.Node(v.Behind[0]), x.Node(v.Behind[1]))
	}
	if x.Unfinished != "" {
		row("unfinished", "%s", x.Unfinished)
	}
	if x.Slowdown != nil {
		b.WriteString(x.Slowdown.text())
	}
	return b.String()
}

// Node returns the name of a node, or its number.
func (x *Report) Node(v int32) string {
	if int(v) < len(x.Nodes) {
		return x.Nodes[v]
	}
	return strconv.Itoa(int(v))
}

func micros(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }
