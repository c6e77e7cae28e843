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
