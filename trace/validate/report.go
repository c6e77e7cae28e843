package validate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
)

// Problem is one violation of a rule, with its line in the file.
type Problem struct {
	Line    int
	Rule    string // short name, stable
	Text    string
	Warning bool
	// Last is set on the last example of a kind in Report.Problems; More counts the further problems of that
	// kind.
	Last bool
	More int
}

// String prints line, severity, text and rule.
func (p Problem) String() string {
	kind := "error"
	if p.Warning {
		kind = "warning"
	}
	return fmt.Sprintf("%d: %s: %s [%s]", p.Line, kind, p.Text, p.Rule)
}

// Report holds the problems found and the trace's counts.
type Report struct {
	Info chrome.Info
	// Problems are examples of each kind: errors before warnings, kinds in the
	// order of their first lines.
	Problems []Problem
	// All are the problems one by one, if Options.All is set: errors
	// before warnings, by line. LeftOut counts those beyond the first 100,000.
	All                      []Problem
	LeftOut                  int
	Errors, Warnings         int // all of them
	Tracks, Slices           int
	Flows, Counters, Instant int
	Async                    int
	End                      units.Time
}

const (
	maxPerKind = 5 // examples of a kind
	maxAll     = 100_000
)

// kindKey is the text of problems of one kind without names and numbers.
type kindKey struct {
	rule, format string
	warning      bool
}

// kind accumulates the problems of one kind.
type kind struct {
	count    int
	examples []Problem
}

// found is a problem whose severity may not be known yet.
type found struct {
	Problem
	format string
}

func (c *checker) problem(line int, rule, format string, args ...any) {
	c.add(&found{Problem{Line: line, Rule: rule, Text: fmt.Sprintf(format, args...)}, format})
}

func (c *checker) warn(line int, rule, format string, args ...any) {
	c.add(&found{Problem{Line: line, Rule: rule, Text: fmt.Sprintf(format, args...), Warning: true}, format})
}

// ours reports a violation of a rule of our schema: an error in our files, a warning in others.
func (c *checker) ours(line int, rule, format string, args ...any) {
	c.own = append(c.own, found{Problem{Line: line, Rule: rule, Text: fmt.Sprintf(format, args...)}, format})
	if len(c.own) > 1000 {
		c.settleOwn()
	}
}

func (c *checker) settleOwn() {
	strict := strings.HasPrefix(c.rep.Info.Schema, "simccl/")
	for i := range c.own {
		c.own[i].Warning = !strict
		c.add(&c.own[i])
	}
	c.own = c.own[:0]
}

func (c *checker) add(p *found) {
	if p.Warning {
		c.rep.Warnings++
	} else {
		c.rep.Errors++
	}
	key := kindKey{p.Rule, p.format, p.Warning}
	k := c.kinds[key]
	if k == nil {
		k = &kind{}
		c.kinds[key] = k
	}
	k.count++
	k.example(p.Problem)
	switch {
	case !c.all:
	case len(c.rep.All) < maxAll:
		c.rep.All = append(c.rep.All, p.Problem)
	default:
		c.rep.LeftOut++
	}
}

// example stores the problem if it is one of the first by line.
func (k *kind) example(p Problem) {
	at, _ := slices.BinarySearchFunc(k.examples, p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), -1)
	})
	if at < maxPerKind {
		k.examples = slices.Insert(k.examples, at, p)
		k.examples = k.examples[:min(len(k.examples), maxPerKind)]
	}
}

// before orders problems: errors first, then by line.
func before(a, b Problem) int {
	switch {
	case a.Warning == b.Warning:
		return cmp.Compare(a.Line, b.Line)
	case a.Warning:
		return 1
	}
	return -1
}

// list sorts the problems into the report.
func (c *checker) list() {
	var kinds []*kind
	for _, k := range c.kinds { //lint:sorted below
		last := &k.examples[len(k.examples)-1]
		last.Last, last.More = true, k.count-len(k.examples)
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b *kind) int {
		x, y := a.examples[0], b.examples[0]
		return cmp.Or(before(x, y), strings.Compare(x.Rule, y.Rule), strings.Compare(x.Text, y.Text))
	})
	for _, k := range kinds {
		c.rep.Problems = append(c.rep.Problems, k.examples...)
	}
	slices.SortStableFunc(c.rep.All, before)
}

// quoted returns a name of the trace in quotes, for a message.
func quoted(name string) string { return termtext.Quote(name, 80) }

// bare returns a name of the trace without quotes, for a message.
func bare(name string) string { return termtext.Short(name, 80) }
