package scenario

import (
	"errors"
	"fmt"
)

// MaxPoints bounds the points of a grid, so that they are listed and compared within seconds.
const MaxPoints = 250_000

// ErrTooManyPoints: a grid with more than MaxPoints combinations.
var ErrTooManyPoints = errors.New("the grid has too many points")

// Points is how many Specs Expand yields: the product of the axes' lengths, 1
// without a grid.
func (s *Spec) Points() (int, error) {
	n := 1
	for i := range s.Grid {
		if n *= len(s.Grid[i].Values); n > MaxPoints {
			return 0, fmt.Errorf("%w: more than %d", ErrTooManyPoints, MaxPoints)
		}
	}
	return n, nil
}

// Expand calls yield with each point of the grid, in order, until it returns
// false: a Spec without a Grid. The last axis changes fastest, so the points of
//
//	[{"path": "machine.nodes[0].count", "values": [1, 2]},
//	 {"path": "nccl.env.NCCL_ALGO", "values": ["Ring", "Tree"]}]
//
// are 1 Ring, 1 Tree, 2 Ring, 2 Tree.
func (s *Spec) Expand(yield func(i int, point Spec) bool) error {
	n, err := s.Points()
	if err != nil {
		return err
	}
	for i := range n {
		point, err := s.Point(i)
		if err != nil {
			return err
		}
		if !yield(i, point) {
			return nil
		}
	}
	return nil
}

// Point is the i-th point of the grid.
func (s *Spec) Point(i int) (Spec, error) {
	p := s.Clone()
	p.Grid = nil
	for a := len(s.Grid) - 1; a >= 0; a-- {
		axis := &s.Grid[a]
		v := i % len(axis.Values)
		i /= len(axis.Values)
		if err := set(&p, axis.Path, axis.Values[v]); err != nil {
			return Spec{}, &FieldError{Path: fmt.Sprintf("grid[%d].values[%d]", a, v),
				Value: string(axis.Values[v]), Problem: err.Error()}
		}
	}
	return p, nil
}

// Set stores a JSON value at a path of a Spec: "machine.nodes[0].count", "nccl.env.NCCL_ALGO".
// A list may grow by one element.
func (s *Spec) Set(path string, value Value) error { return set(s, path, value) }

func set(s *Spec, path string, value Value) error {
	return setMember(s, path, value, "grid", "scenario")
}
