package spec

import "slices"

// Change is a moment at which faults begin or end, in ps.
type Change struct {
	At    int64
	Fault int
	Begin bool
}

// Changes puts the beginnings and ends of faults in order.
func Changes(faults []Fault) (all []Change) {
	for i, f := range faults {
		all = append(all, Change{int64(f.From), i, true})
		if f.To > 0 {
			all = append(all, Change{int64(f.To), i, false})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return int(a.At - b.At) })
	return all
}

// During is the rate of a cable while the fault lasts, in bit/s, and what share of its frames is lost.
func (f *Fault) During(c *Cable) (rate int64, loss float64) {
	rate, loss = c.Rate, 1-(1-c.Loss)*(1-f.Loss)
	if f.Slow > 0 {
		rate = int64(f.Slow * float64(c.Rate))
	}
	if f.Down {
		loss = 1
	}
	return rate, loss
}
