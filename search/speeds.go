package search

// Speeds in GB/s that NCCL tries, fastest first (search.cc:976-988): one row
// for machines by their lowest compute capability, inside a host and between
// hosts.
var (
	speedsIntra      = []float32{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3}
	speedsInter      = []float32{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12}
	speedsIntraSM90  = []float32{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3}
	speedsInterSM90  = []float32{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}
	speedsIntraSM100 = []float32{90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18}
	speedsInterSM100 = []float32{96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}
)

// speedsFor returns the row for a lowest compute capability.
func speedsFor(sm int, inter bool) []float32 {
	switch {
	case inter && sm >= 100:
		return speedsInterSM100
	case inter && sm >= 90:
		return speedsInterSM90
	case inter:
		return speedsInter
	case sm >= 100:
		return speedsIntraSM100
	case sm >= 90:
		return speedsIntraSM90
	}
	return speedsIntra
}

// Budgets in calls of the recursive GPU search (search.cc:315-318); they bound
// NCCL's time and therefore decide what it finds.
const (
	budgetGlobal = 1 << 19
	budgetFree   = 1 << 14
	budgetSame   = 1 << 8  // every channel repeats the first
	budgetPCI    = 1 << 10 // first try in PCI order between hosts (search.cc:723)
)

// Limits of the patterns that have a GPU as head of each channel
// (device.h:193, 207).
const (
	maxNVLSHeads    = 32
	maxCollNetHeads = 8
)
