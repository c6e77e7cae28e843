package logcheck

import (
	"fmt"

	"github.com/simccl/simccl/rules"
)

// suspect finds the release whose rules reproduce the differing lines of the log, and the first of its rules
// that does so alone. It repeats the decision with each release, then, within the limit of a search, with
// each rule in which the best release differs from the log's.
func (f *finder) suspect(at guess, best *fit) string {
	r := best.site.Comm.Rules
	known := rules.KnownOf(r.Library)
	var by *rules.Ruleset
	left := best.differing
	for i := range known {
		other, err := rules.For(known[len(known)-1-i]) // of equals the newest
		if err != nil || other.Release == r.Release {
			continue
		}
		if t := f.trialBy(other, at); t != nil && t.differing < left {
			by, left = other, t.differing
		}
	}
	if by == nil {
		return fmt.Sprintf("no release from %s to %s prints a differing line as the log has it", known[0],
			known[len(known)-1])
	}
	text := fmt.Sprintf("%s prints %d of %d differing lines as the log has them", by.Name(),
		best.differing-left, best.differing)
	differing := rules.Differing(r, by)
	for i, rule := range differing {
		one, err := rules.For(r.Version())
		if err != nil || i >= maxTrials(f.nranks) {
			return text + fmt.Sprintf("; %d of its %d rules that differ were tried and none does so alone", i,
				len(differing))
		}
		rule.Take(one, by)
		if t := f.trialBy(one, at); t != nil && t.differing < best.differing {
			return text +
				fmt.Sprintf("; the first rule that does so alone is %q (%s, docs/VERSIONS.md), for "+
					"%d of them", rule.Text(), rule.Name, best.differing-t.differing)
		}
	}
	return text + "; no rule does so alone"
}
