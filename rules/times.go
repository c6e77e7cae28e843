package rules

import "fmt"

// Measured is the release with which the constants of the machine classes were
// measured (docs/results/ACCURACY.md).
func Measured() Release { return Release{2, 28, 9} }

// doubts are by how much the relative uncertainty of a predicted time is larger than
// that of a machine class, because its constants are those of Measured: 0.05 for five
// percentage points. They are estimates by how far the code that runs on the GPU
// differs (src/device of the tags, compared token by token without comments; the
// figures are in docs/VERSIONS.md), newest first.
var doubts = []struct {
	since Release
	doubt float64
}{
	{Release{2, 30, 3}, .04}, // loops are unrolled by other directives; Simple's reductions as in 2.29.7
	{Release{2, 29, 2}, .03}, // Simple reduces without an operation of its own for each source
	{Release{2, 28, 9}, 0},
	{Release{2, 28, 3}, .01}, // the same kernels; enqueueing differs
	{Release{2, 27, 3}, .02}, // the same kernels, but for names; launches differ
	{Release{2, 26, 2}, .05}, // other packs and reductions; the kernel's prologue counts work
	// Simple waits for and posts steps otherwise; all protocols poll for aborts otherwise
	{Release{2, 24, 3}, .08},
	{Release{2, 23, 4}, .10}, // besides, other reductions and send/recv
	{Release{2, 22, 3}, .12}, // half of Simple differs; LL's loads are ordered otherwise
	{Release{2, 21, 5}, .15}, // kernels take their work from another queue
}

// TimesDoubt is by how much a predicted time is less certain than with Measured: 0 for
// that one.
func (r *Ruleset) TimesDoubt() float64 {
	for _, d := range doubts {
		if r.Release.Compare(d.since) >= 0 {
			return d.doubt
		}
	}
	return doubts[len(doubts)-1].doubt
}

// DoubtText says in words what TimesDoubt is and where it comes from.
func (r *Ruleset) DoubtText() string {
	return fmt.Sprintf("kernels were measured with NCCL %s: %.0f %% are added for %s", Measured(),
		100*r.TimesDoubt(), r.Version())
}
