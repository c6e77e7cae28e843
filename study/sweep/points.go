package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/packetrun"
)

func shortList() string { return strings.Join(slices.Sorted(maps.Keys(shortNames)), ", ") }

// count returns the number of combinations before Where, or a number above scenario.MaxPoints if there are
// more.
func (s *Spec) count() int {
	n := 1
	for _, f := range s.Factors {
		if n *= len(f.Choices); n > scenario.MaxPoints {
			return n
		}
	}
	return n
}

// Point is one combination of a sweep's settings, as a scenario.
type Point struct {
	Index    int
	Settings []Setting
	Spec     scenario.Spec
	Network  *packetrun.Request // in place of Spec; else nil
}

// labels returns the settings as JSON, in order: {"nodes": 2, "NCCL_ALGO": "Ring"}.
func (p *Point) labels() json.RawMessage {
	var b strings.Builder
	b.WriteByte('{')
	for i, s := range p.Settings {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(s.Name)
		fmt.Fprintf(&b, "%s:%s", name, s.Value)
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

// check returns an error for an invalid point, positioned at the member of the specification that causes it.
// The error is a *fail.FileError.
func (s *Spec) check(p *Point) error {
	if p.Network != nil {
		return nil // by what finds its key, which reads its files
	}
	err := p.Spec.Validate()
	var field *scenario.FieldError
	if !errors.As(err, &field) {
		return err
	}
	in := specParser{file: s.File}
	text := field.Problem
	if field.Value != "" {
		text = field.Value + ": " + text
	}
	for _, set := range p.Settings {
		if strings.HasPrefix(field.Path, set.Path) {
			return in.fail(set.at, field.Hint, "%s: %s", set.Name, text)
		}
	}
	at := s.at(field.Path)
	return in.fail(at.at, field.Hint, "base: %s: %s", field.Path, text)
}

// at returns the member of base that contains a path: the one with the longest path.
func (s *Spec) at(path string) (best placed) {
	for _, m := range s.members {
		if strings.HasPrefix(path, m.path) && len(m.path) >= len(best.path) {
			best = m
		}
	}
	return best
}

// point returns the i-th combination; kept is false if a condition of Where excludes it.
func (s *Spec) point(i int) (p *Point, kept bool, err error) {
	p = &Point{Index: i, Spec: s.Base.Clone(), Network: s.Network.Clone()}
	picked := make([]int, len(s.Factors))
	for f := len(s.Factors) - 1; f >= 0; f-- {
		n := len(s.Factors[f].Choices)
		picked[f], i = i%n, i/n
	}
	for f, c := range picked {
		p.Settings = append(p.Settings, s.Factors[f].Choices[c]...)
	}
	for _, set := range p.Settings {
		if p.Network != nil {
			if err := p.Network.Set(set.Name, set.Value); err != nil {
				return nil, false, fmt.Errorf("%s: %s: %w", s.File, set.Name, err)
			}
			continue
		}
		if err := p.Spec.Set(set.Path, set.Value); err != nil {
			return nil, false, fmt.Errorf("%s: %s: %w", s.File, set.Name, err)
		}
		if set.Path == "seed" { // one draw, where no seed would be the median of several
			p.Spec.Seed = max(p.Spec.Seed, 1)
		}
	}
	kept, err = s.keeps(p)
	return p, kept, err
}
