package diff

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/scenario"
)

// ruleReasons returns the rules of the releases that change a decision: it repeats the decision of A with
// each single rule of B, and that of B with each single rule of A. A rule that matters only together with
// others shows on the side that has those.
func ruleReasons(ctx context.Context, a, b *Side, ops []coll.Func) ([]string, error) {
	from, to := a.site.Config.Rules, b.site.Config.Rules
	var out, plans []string
	for _, rule := range rules.Differing(from, to) {
		var changed []string
		for _, side := range []*Side{a, b} {
			other := to
			if side == b {
				other = from
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			for _, what := range side.without(rule, other, ops) {
				if !slices.Contains(changed, what) {
					changed = append(changed, what)
				}
			}
		}
		name := rule.Text() + " (" + rule.Name + ", " + releases(rule.Changed(from, to)) + ")"
		switch {
		case len(changed) > 0:
			out = append(out, "by "+name+": "+strings.Join(changed, ", "))
		case rule.Planning():
			plans = append(plans, name)
		}
	}
	if len(plans) > 0 {
		out = append(out, "plans, and with them times, also by "+strings.Join(plans, ", "))
	}
	return out, nil
}

func releases(list []rules.Release) string {
	var out []string
	for _, r := range list {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}

// without lists what a side decides differently with one rule of another release. It returns nothing if the
// mixture of rules is inconsistent.
func (s *Side) without(rule rules.Rule, other *rules.Ruleset, ops []coll.Func) []string {
	mixed, err := rules.For(s.site.Config.Rules.Version())
	if err != nil {
		return nil
	}
	rule.Take(mixed, other)
	spec, opt := s.Spec, s.opt
	spec.NCCL.Version, opt.Settings.Rules, opt.Warn = "", mixed, nil
	site, err := scenario.Load(&spec, opt)
	if err != nil {
		return nil
	}
	d, err := explain.Compare(explain.Side{Comm: s.site.Comm, Access: s.site.Config.Topo.Access},
		explain.Side{Comm: site.Comm, Access: site.Config.Topo.Access}, ops)
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range d.Figures {
		out = append(out, f.What)
	}
	if len(d.Paths) > 0 {
		out = append(out, "paths")
	}
	for i, c := range d.Choices {
		if i == 0 || d.Choices[i-1].Op != c.Op {
			out = append(out, fmt.Sprintf("choices of %s", c.Op))
		}
	}
	return out
}
