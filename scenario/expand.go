package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// MaxPoints bounds the points of a grid: more is a typing error.
const MaxPoints = 10_000_000

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
			return Spec{}, &FieldError{Path: fmt.Sprintf("grid[%d].values[%d]", a, v), Value: string(axis.Values[v]), Problem: err.Error()}
		}
	}
	return p, nil
}

// Set stores a JSON value at a path of a Spec: "machine.nodes[0].count", "nccl.env.NCCL_ALGO".
// A list may grow by one element.
func (s *Spec) Set(path string, value Value) error { return set(s, path, value) }

// set stores a JSON value at a path of a Spec. A list may grow by one element.
func set(s *Spec, path string, value json.RawMessage) error {
	v := reflect.ValueOf(s).Elem()
	rest := path
	for rest != "" {
		var step string
		step, rest = cutStep(rest)
		switch {
		case v.Kind() == reflect.Struct:
			f, ok := member(v, step)
			if !ok || step == "grid" || step == "scenario" {
				return fmt.Errorf("%s: a scenario has no member %q", path, step)
			}
			v = f
		case v.Kind() == reflect.Slice:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i > v.Len() {
				return fmt.Errorf("%s: index %q of a list of %d", path, step, v.Len())
			}
			if i == v.Len() {
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			}
			v = v.Index(i)
		case v.Kind() == reflect.Map && rest == "":
			item := reflect.New(v.Type().Elem())
			if err := strict(value, item.Interface()); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(reflect.ValueOf(step), item.Elem())
			return nil
		default:
			return fmt.Errorf("%s: nothing lies below %q", path, step)
		}
	}
	fresh := reflect.New(v.Type())
	if err := strict(value, fresh.Interface()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	v.Set(fresh.Elem())
	return nil
}

// cutStep takes the first step off a path: "nodes[0].count" gives "nodes" and
// "[0].count", that gives "0" and "count". Names of variables have no dots.
func cutStep(path string) (step, rest string) {
	if strings.HasPrefix(path, "[") {
		step, rest, _ = strings.Cut(path[1:], "]")
		return step, strings.TrimPrefix(rest, ".")
	}
	i := strings.IndexAny(path, ".[")
	switch {
	case i < 0:
		return path, ""
	case path[i] == '.':
		return path[:i], path[i+1:]
	}
	return path[:i], path[i:]
}

// member finds a struct's field by its JSON name.
func member(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func strict(data []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(to)
}
