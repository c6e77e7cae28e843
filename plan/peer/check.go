package peer

import (
	"fmt"
	"slices"
)

// WrongError reports a place that does not end with the promised content, or a move that another move of the
// same phase disturbs: a defect of the plan.
type WrongError struct {
	Plan  string
	Phase string
	Place Place
	Why   string
}

func (e *WrongError) Error() string {
	return fmt.Sprintf("%s: phase %s: part %d of rank %d: %s", e.Plan, e.Phase, e.Place.Part, e.Place.Rank,
		e.Why)
}

// Check proves that all sources are filled when they are read, that no move reads or writes a place that
// another rank's move of the same phase writes, and that each goal has each rank's contribution exactly once.
// Errors: a *WrongError.
func (p *Plan) Check() error {
	c := checker{plan: p, has: map[Place][]int32{}}
	for _, at := range p.Has {
		c.has[at] = []int32{at.Rank}
	}
	for i := range p.Phases {
		if err := c.phase(&p.Phases[i]); err != nil {
			return err
		}
	}
	for _, g := range p.Goals {
		if got := c.has[g.Place]; !slices.Equal(got, g.From) {
			return c.wrong("end", g.Place, fmt.Sprintf("has the contributions of %v, not of %v", got, g.From))
		}
	}
	return nil
}

// checker records whose contributions are at each place.
type checker struct {
	plan *Plan
	has  map[Place][]int32
}

func (c *checker) wrong(phase string, at Place, why string) error {
	return &WrongError{Plan: c.plan.Op + " by " + c.plan.Kernel, Phase: phase, Place: at, Why: why}
}

func (c *checker) phase(ph *Phase) error {
	wrote := make(map[Place]int32, len(ph.Moves))
	for i := range ph.Moves {
		m := &ph.Moves[i]
		for at := range m.all {
			if by, ok := wrote[at]; ok {
				return c.wrong(ph.Name, at, fmt.Sprintf("written by rank %d and by rank %d", by, m.By))
			}
			wrote[at] = m.By
		}
	}
	for i := range ph.Moves {
		m := &ph.Moves[i]
		var sum []int32
		for _, s := range m.Sources {
			by, ok := wrote[s]
			if ok && by != m.By {
				return c.wrong(ph.Name, s, fmt.Sprintf("read by rank %d while rank %d writes it", m.By, by))
			}
			got := c.holds(s)
			if got == nil {
				return c.wrong(ph.Name, s, "read before it is there")
			}
			sum = append(sum, got...)
		}
		slices.Sort(sum)
		if len(slices.Compact(slices.Clone(sum))) != len(sum) {
			return c.wrong(ph.Name, m.To, fmt.Sprintf("a contribution is there twice: %v", sum))
		}
		for at := range m.all {
			c.has[at] = sum
		}
	}
	return nil
}

// all yields a move's destinations.
func (m *Move) all(yield func(Place) bool) {
	for i := -1; i < len(m.Also); i++ {
		at := m.To
		if i >= 0 {
			at = m.Also[i]
		}
		if !yield(at) {
			return
		}
	}
}

// holds returns the contributions at a place, stored there or as a piece of a larger part.
func (c *checker) holds(at Place) []int32 {
	if got, ok := c.has[at]; ok {
		return got
	}
	if of := c.plan.Parts[at.Part].Of; of >= 0 {
		return c.holds(Place{at.Rank, at.Buffer, of})
	}
	return nil
}
