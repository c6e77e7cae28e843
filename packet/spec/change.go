package spec

import "slices"

// Change is the beginning or end of a fault at a time (ps), and the state of its cable from then on.
type Change struct {
	At    int64
	Fault int
	Begin bool
	Now   Condition
}

// Condition is the state of a cable under all its present faults.
type Condition struct {
	Rate  int64   // bit/s
	Loss  float64 // probability that a frame is lost on arrival
	Down  bool    // both ends know that it is cut
	Storm [2]bool // B pauses A; A pauses B
}

// Changes returns the beginnings and ends of faults in the order of time.
func Changes(faults []Fault, n *Network) (all []Change) {
	for i, f := range faults {
		all = append(all, Change{At: int64(f.From), Fault: i, Begin: true})
		if f.To > 0 {
			all = append(all, Change{At: int64(f.To), Fault: i})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return int(a.At - b.At) })
	begun := make(map[int][]int, len(faults)) // by cable: faults that have begun and not ended
	for i := range all {
		c := &all[i]
		cable := faults[c.Fault].Cable
		now := begun[cable]
		if c.Begin {
			now = append(now, c.Fault)
		}
		now = slices.DeleteFunc(now, func(k int) bool { return faults[k].over(c.At) })
		begun[cable], c.Now = now, condition(faults, now, &n.Cables[cable])
	}
	return all
}

// over reports whether a fault has ended; a rerouting fault never ends.
func (f *Fault) over(at int64) bool { return f.To > 0 && int64(f.To) <= at && !f.Reroute }

// condition combines overlapping faults of a cable: the lowest rate wins, losses are independent of each
// other, and one fault with Down or Storm is enough.
func condition(faults []Fault, now []int, c *Cable) Condition {
	x, share, kept := Condition{Rate: c.Rate, Loss: c.Loss}, 1.0, 1-c.Loss
	for _, k := range now {
		f := &faults[k]
		if kept *= 1 - f.Loss; f.Slow > 0 {
			share = min(share, f.Slow)
		}
		x.Down = x.Down || f.Down
		if f.Storm && f.Back {
			x.Storm[1] = true
		} else if f.Storm {
			x.Storm[0] = true
		}
	}
	if len(now) > 0 {
		x.Rate, x.Loss = int64(share*float64(c.Rate)), 1-kept
	}
	if x.Down {
		x.Loss = 1
	}
	return x
}
