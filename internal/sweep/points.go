package sweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
	"go.yaml.in/yaml/v3"

	"github.com/simccl/simccl/scenario"
)

// Condition keeps some points: an expression over what varies.
type Condition struct {
	Text    string
	program *vm.Program
}

func shortList() string { return strings.Join(slices.Sorted(maps.Keys(shortNames)), ", ") }

// where reads one condition or a list of them.
func (p *parser) where(s *Spec, n *yaml.Node) error {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	for _, c := range list {
		if c.Kind != yaml.ScalarNode {
			return p.fail(c, "write nodes <= 16 || NCCL_ALGO == \"Ring\"", "a condition is missing")
		}
		program, err := expr.Compile(c.Value, expr.Env(map[string]any{}), expr.AllowUndefinedVariables(), expr.AsBool())
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			return p.fail(c, "write nodes <= 16 || NCCL_ALGO == \"Ring\"", "%s", first)
		}
		s.Where = append(s.Where, &Condition{Text: c.Value, program: program})
	}
	return nil
}

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
	}
	kept, err = s.keeps(p)
	return p, kept, err
}

// keeps evaluates the conditions. A name is one that the file uses; its value is
// that of the point, a list of one as its element.
func (s *Spec) keeps(p *Point) (bool, error) {
	if len(s.Where) == 0 {
		return true, nil
	}
	env := map[string]any{}
	for _, set := range p.Settings {
		var v any
		if err := json.Unmarshal(set.Value, &v); err != nil {
			return false, err
		}
		if l, ok := v.([]any); ok && len(l) == 1 {
			v = l[0]
		}
		env[set.Name] = v
	}
	for _, c := range s.Where {
		out, err := expr.Run(c.program, env)
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			return false, fmt.Errorf("%s: where %q at %s: %s; the names are those under grid, zip, list and seeds", s.File, c.Text, p.Labels(), first)
		}
		if keep, ok := out.(bool); !ok || !keep {
			return false, nil
		}
	}
	return true, nil
}
