package compute

import "math"

// floor is the part of a GPU's limit of power that does not follow its clock: leakage, device memory, idle
// units. A guess between what an H100 takes idle (70 W of 700) and what memory at its peak takes beside.
const floor = 0.2

// leastLimit is the lowest limit of power that Limited takes, as a fraction of the data sheet's.
const leastLimit = 0.5

// Limited returns the class at a limit of power in watts below the data sheet's. Products that are at the
// limit of power then clock lower: what they take above the floor goes as the cube of the clock, since
// voltage follows it (P = C·V²·f). Memory and short kernels are as fast as before. ok is false where the
// class has no data sheet's limit, or the limit is less than half of it.
func (c *Class) Limited(watts float64) (out *Class, ok bool) {
	if c.Power == 0 || watts < leastLimit*c.Power || watts > 2*c.Power {
		return nil, false
	}
	limited := *c
	if watts < c.Power {
		limited.Sustained *= math.Cbrt((watts/c.Power - floor) / (1 - floor))
	}
	return &limited, true
}

// WithFlash2 returns the class with FlashAttention-2's kernels in place of those that were measured, which
// newer libraries choose (cuDNN's, FlashAttention-3). ok is false where nothing of them is known.
func (c *Class) WithFlash2() (out *Class, ok bool) {
	if c.Flash2Forward.Efficiency == 0 || c.Flash2Backward.Efficiency == 0 {
		return nil, false
	}
	older := *c
	older.Forward, older.Backward = c.Flash2Forward, c.Flash2Backward
	return &older, true
}
