package search

import "github.com/simccl/simccl/rules"

// speedsFor returns the speeds to try for a lowest compute capability. The last
// row holds for all below it, a negative one included: a file may say sm="-1".
func speedsFor(r *rules.Search, sm int, inter bool) []float32 {
	i := 0
	for i < len(r.Speeds)-1 && sm < r.Speeds[i].SM {
		i++
	}
	if inter {
		return r.Speeds[i].Inter
	}
	return r.Speeds[i].Intra
}

// Budgets in calls of the recursive GPU search (search.cc:315-318); they bound
// NCCL's time and therefore decide what it finds.
const (
	budgetGlobal = 1 << 19
	budgetFree   = 1 << 14
	budgetSame   = 1 << 8  // every channel repeats the first
	budgetPCI    = 1 << 10 // first try in PCI order between hosts (search.cc:723)
)
