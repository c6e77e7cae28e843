package logcheck

import (
	"fmt"

	"github.com/simccl/simccl/rules"
)

// suspect says which release prints lines that differ as the log has them, and the first
// of its rules that does so by itself. It decides again by each release, and then by each rule
// in which the best of them is not the release of the log, as often as a search may.
func (f *finder) suspect(at guess, best *fit) string {
	r := best.site.Comm.Rules
	known, last := rules.Known(), f.trials+maxTrials(f.nranks)
	var by *rules.Ruleset
	left, cut := best.differing, false
	for i := range known {
		other, err := rules.For(known[len(known)-1-i].String()) // of equals the newest
		if cut = f.trials >= last; cut {
			break
		}
		if err != nil || other.Release == r.Release {
			continue
		}
		if t := f.trialBy(other, at); t != nil && t.differing < left {
			by, left = other, t.differing
		}
	}
	if by == nil && cut {
		return "other releases were not all tried: the log leaves too much open"
	}
	if by == nil {
		return fmt.Sprintf("no release from %s to %s prints a differing line as the log has it", known[0],
			known[len(known)-1])
	}
	text := fmt.Sprintf("NCCL %s prints %d of %d differing lines as the log has them", by.Version(),
		best.differing-left, best.differing)
	for _, rule := range rules.Differing(r, by) {
		one, err := rules.For(r.Version())
		if err != nil || f.trials >= last {
			return text
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
