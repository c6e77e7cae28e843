package gen

import (
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/topo/machine/datasheet"
	"github.com/simccl/simccl/units"
)

// GPUs are the names that Peak knows.
func GPUs() (names []string) {
	for _, name := range datasheet.Names() {
		names = append(names, strings.ToLower(name))
	}
	return names
}

// Estimates where nothing was measured: what matrix products reach of the peak, what
// memory does, what lies between two kernels.
const (
	DefaultEfficiency       = 0.6
	DefaultMemoryEfficiency = 0.8
	DefaultOverhead         = 2 * units.Microsecond
	// Uncertainty of an iteration's compute by roofline, as a fraction: efficiencies of
	// published training runs lie between 0.4 and 0.75 of the peak.
	Uncertainty = 0.3
)

// Peak is the roofline of a GPU by name for a type; false where it is not known.
func Peak(name string, t coll.DataType) (Roofline, bool) {
	g, ok := datasheet.Find(name)
	if !ok {
		return Roofline{}, false
	}
	r := Roofline{Name: strings.ToLower(g.Name), Capacity: units.Bytes(g.CapacityBytes()),
		FLOPS: g.Matrix * 1e12, Memory: g.Memory * 1e9, Efficiency: DefaultEfficiency,
		MemoryEfficiency: DefaultMemoryEfficiency, Overhead: DefaultOverhead}
	if t.Size() > 2 {
		r.FLOPS = g.Single * 1e12
	}
	return r, true
}
