package page

import (
	"fmt"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/sim/congestion"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// page is all that a report shows. Empty parts are left out.
type page struct {
	Title    string
	Command  string
	Facts    []Fact
	Points   []point
	Rivals   []rival // rows of the cost map, over the sizes of Points
	System   *topo.System
	Host     string          // whose links are drawn: "node0"
	Links    []exec.LinkLoad // of one operation of the last size
	Folded   bool            // equivalent ranks were merged in it
	Elapsed  units.Time      // of it
	Graphs   search.Set      // of the System; their channels are drawn on it
	Rings    []ring
	Trees    []tree
	NodeOf   []int32    // rank → node, for the rings' colours
	Measured []Measured // on hardware
	Matrix   string     // path matrix as text, for Systems too large to draw it
	Timeline *trace.Memory
	Net      *congestion.Facts // of a network that was simulated frame by frame, in that operation
	Ports    *ports            // states of its ports over time; nil: none
	Incast   string            // in words; empty: no port before a host holds the operation up
	Crowd    string            // in words; empty: routes spread
	Settings []setting
	Warnings []string
	Why      []*explain.Report      // of some sizes, by size
	NoBest   string                 // why no other choices were simulated; empty: they were
	marked   func(topo.NodeID) bool // devices to be marked; nil: none
	Trace    string                 // file with the trace, as the page names it; empty: none
}

// point is one size of the sweep.
type point struct {
	Size             units.Bytes
	TimeUs, BusBW    float64 // simulated
	ModelUs, ModelBW float64 // by NCCL's cost model; 0: it has none
	LimitBW          float64 // bound given by the limiting link, always busy; 0: unknown
	Best             string  // the fastest of all choices simulated; "" where they were not
	Setting          string  // the variables that force it
	BestUs, BestBW   float64 // TimeUs over the regret, and its bus bandwidth
	Choice           string
	Channels         int
	Link             string
	// Least and Most are the slowest and the fastest draw of hashed routes, Draws says them in words;
	// zero where the draw does not matter.
	Least, Most Sample
	Draws       []string
}

// rival is one algorithm and protocol with its predicted times, 0 where off.
type rival struct {
	Name  string
	Times []float64 // microseconds, by Point
}

// ring is a channel's ring in rank order.
type ring struct {
	Channel int
	Order   []int32
}

// tree is a channel's tree, by parents.
type tree struct {
	Channel int
	Up      []int32 // by rank: the rank above it, -1 at the root
}

// Measured is a curve from hardware.
type Measured struct {
	Name   string
	Points []Sample // by size
	Notes  []string // what was left out, and what else to know of it
}

// Sample is one measured size.
type Sample struct {
	Size          units.Bytes
	TimeUs, BusBW float64
}

// setting is a variable in force.
type setting struct{ Name, Value, Origin, Effect string }

// markup is HTML in which everything was escaped where it was put in.
type markup string

// sizeName prints a size with the largest binary unit that divides it.
func sizeName(b units.Bytes) string {
	for _, u := range []struct {
		by   units.Bytes
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b >= u.by && b%u.by == 0 {
			return fmt.Sprintf("%d %s", b/u.by, u.name)
		}
	}
	return fmt.Sprintf("%d B", b)
}

// measuredAt formats a measured curve's value at a size for the table.
func measuredAt(m Measured, size units.Bytes) (us, bw string) {
	for _, x := range m.Points {
		if x.Size == size {
			return bandwidth(x.TimeUs), bandwidth(x.BusBW)
		}
	}
	return "–", "–"
}
