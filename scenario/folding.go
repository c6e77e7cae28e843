package scenario

import (
	"slices"

	"github.com/simccl/simccl/sim"
)

var foldNames = [...]string{"auto", "exact", "near", "off"}

// Folds lists the words of Engine.Fold.
func Folds() []string { return slices.Clone(foldNames[:]) }

// foldingOf is a word's folding, that of auto for another.
func foldingOf(word string) sim.Folding {
	return [...]sim.Folding{sim.FoldAuto, sim.FoldExact, sim.FoldNear,
		sim.Unfolded}[max(slices.Index(foldNames[:], word), 0)]
}
