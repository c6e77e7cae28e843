package netplugin

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/tuning"
)

// regionText has the corners of the regions of aws-ofi-nccl's tuner, in bytes and ranks
// (numbers of src/tuner/nccl_ofi_regions.cpp; lines that it extends to the end of its
// range are extended here already).
//
//go:embed regions.json
var regionText []byte

// regionFile is regionText: by network class, operations and their regions in order.
type regionFile map[string][]struct {
	RanksPerNode int
	Func         string
	Regions      []region
}

// region is a polygon over log2 of bytes and log2 of ranks, its edges included.
type region struct {
	Choice  string // algorithm and protocol
	Corners [][2]float64
}

var readRegions = sync.OnceValue(func() regionFile {
	var f regionFile
	if err := json.Unmarshal(regionText, &f); err != nil {
		panic(err) // a test reads it
	}
	return f
})

// blackwell is the compute capability of a B200: of EFA's fourth generation it alone
// has regions here.
const blackwell = 100

// Tuner is what the tuner of a network class's plugin chooses for so many ranks on
// nodes whose GPUs have a compute capability; nil where it leaves all to NCCL, which it
// does up to two nodes. Not in it: channels that it sets on p6, chunks that it sets
// from NCCL 2.30.3 on, and p6-b300's regions.
func Tuner(class string, ranks, nodes, sm int) *tuning.Plugin {
	if nodes <= 2 || class == "efa-v4" && sm != blackwell {
		return nil
	}
	p := &tuning.Plugin{}
	for _, g := range readRegions()[class] {
		f, err := coll.ParseFunc(g.Func)
		if err != nil || g.RanksPerNode*nodes != ranks {
			continue
		}
		for i := range g.Regions {
			p.Rows = append(p.Rows, g.Regions[i].rows(f, ranks)...)
		}
	}
	if len(p.Rows) == 0 {
		return nil
	}
	return p
}

// rows are the ranges of bytes in which a region holds for so many ranks.
func (r *region) rows(f coll.Func, ranks int) (out []tuning.Row) {
	name, proto, _ := strings.Cut(r.Choice, " ")
	row := tuning.Row{Func: f, Channels: -1, Nodes: -1, Ranks: -1, Pipe: -1, Registered: -1}
	var err error
	if row.Algo, err = coll.ParseAlgorithm(name); err != nil {
		panic(fmt.Sprintf("%s: %v", r.Choice, err)) // a test reads them
	}
	if row.Proto, err = coll.ParseProtocol(proto); err != nil {
		panic(fmt.Sprintf("%s: %v", r.Choice, err))
	}
	for _, span := range r.spans(math.Log2(float64(ranks))) {
		row.Min, row.Max = uint64(math.Ceil(math.Exp2(span[0])-1e-6)),
			uint64(math.Floor(math.Exp2(span[1])+1e-6))
		if row.Min <= row.Max {
			out = append(out, row)
		}
	}
	return out
}

// spans are the ranges of x in which the polygon holds at a height y.
func (r *region) spans(y float64) (out [][2]float64) {
	corners := make([][2]float64, len(r.Corners))
	for i, c := range r.Corners {
		corners[i] = [2]float64{math.Log2(max(c[0], 1e-6)), math.Log2(max(c[1], 1e-6))}
	}
	var at []float64
	for i, a := range corners {
		b := corners[(i+1)%len(corners)]
		switch {
		case same(a[1], y) && same(b[1], y):
			out = append(out, [2]float64{min(a[0], b[0]), max(a[0], b[0])})
		case same(a[1], y), same(b[1], y): // its corner is of the next edge, too
		case a[1] < y != (b[1] < y):
			at = append(at, a[0]+float64((y-a[1])/(b[1]-a[1])*(b[0]-a[0])))
			continue
		}
		if same(a[1], y) {
			at = append(at, a[0])
		}
	}
	slices.Sort(at)
	for i := range len(at) - 1 {
		if r.holds(corners, (at[i]+at[i+1])/2, y) {
			out = append(out, [2]float64{at[i], at[i+1]})
		}
	}
	return out
}

// holds reports whether a point that is on no slanted edge is inside.
func (r *region) holds(corners [][2]float64, x, y float64) bool {
	inside := false
	for i, a := range corners {
		b := corners[(i+1)%len(corners)]
		if (a[1] > y) != (b[1] > y) && x < a[0]+float64((y-a[1])/(b[1]-a[1])*(b[0]-a[0])) {
			inside = !inside
		}
	}
	return inside
}

// same reports whether two heights are one.
func same(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
