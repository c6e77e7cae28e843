package sweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/scenario"
)

func shortList() string { return strings.Join(slices.Sorted(maps.Keys(shortNames)), ", ") }

// Count is how many combinations there are, before Where.
func (s *Spec) Count() int {
	n := 1
	for _, f := range s.Factors {
		if n *= len(f.Choices); n > scenario.MaxPoints {
			return n
		}
	}
	return n
}

// Point is one combination.
type Point struct {
	Index    int
	Settings []Setting
	Spec     scenario.Spec
}

// Labels are the settings as JSON, in order: {"nodes": 2, "NCCL_ALGO": "Ring"}.
func (p *Point) Labels() json.RawMessage {
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

// Point makes the i-th combination; kept is false where a condition drops it.
func (s *Spec) Point(i int) (p *Point, kept bool, err error) {
	p = &Point{Index: i, Spec: s.Base.Clone()}
	picked := make([]int, len(s.Factors))
	for f := len(s.Factors) - 1; f >= 0; f-- {
		n := len(s.Factors[f].Choices)
		picked[f], i = i%n, i/n
	}
	for f, c := range picked {
		p.Settings = append(p.Settings, s.Factors[f].Choices[c]...)
	}
	for _, set := range p.Settings {
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
