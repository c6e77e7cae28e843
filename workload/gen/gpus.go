package gen

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// gpu is what data sheets give: dense peaks in 10^12 operations a second with 16 bits
// and with TF32, 10^9 bytes a second of memory.
type gpu struct {
	name           string
	half, tf32, gb float64
}

// gpus are those of the data sheets of NVIDIA (V100, A100, H100, H200, H20, L40S, B200:
// dense values, SXM where there is one).
var gpus = []gpu{
	{"v100", 125, 15.7, 900}, {"a100", 312, 156, 2039}, {"h100", 989.4, 494.7, 3350}, {"h800", 989.4, 494.7, 3350}, {"h200", 989.4, 494.7, 4800},
	{"h20", 148, 74, 4000}, {"l40s", 362, 183, 864}, {"b200", 2250, 1125, 8000},
}

// GPUs are the names that Peak knows.
func GPUs() (names []string) {
	for _, g := range gpus {
		names = append(names, g.name)
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
	i := slices.IndexFunc(gpus, func(g gpu) bool { return g.name == strings.ToLower(name) })
	if i < 0 {
		return Roofline{}, false
	}
	r := Roofline{Name: gpus[i].name, FLOPS: gpus[i].half * 1e12, Memory: gpus[i].gb * 1e9, Efficiency: DefaultEfficiency, MemoryEfficiency: DefaultMemoryEfficiency, Overhead: DefaultOverhead}
	if t.Size() > 2 {
		r.FLOPS = gpus[i].tf32 * 1e12
	}
	return r, true
}
