// Package folding names how ranks are folded.
package folding

import (
	"slices"

	"github.com/simccl/simccl/sim"
)

var words = [...]string{"auto", "exact", "near", "off"}

// Words lists the words.
func Words() []string { return slices.Clone(words[:]) }

// Of is a word's folding, that of auto for another.
func Of(word string) sim.Folding {
	return [...]sim.Folding{sim.FoldAuto, sim.FoldExact, sim.FoldNear,
		sim.Unfolded}[max(slices.Index(words[:], word), 0)]
}
