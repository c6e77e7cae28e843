package process

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/units"
)

// Budget returns the memory budget of a command's inputs: SIMCCL_MEMORY, else bounded.DefaultBudget; less if
// the process may not use that much (ulimit -v).
func (p *Process) Budget() (*bounded.Budget, error) {
	limit := int64(bounded.DefaultBudget)
	if v, _ := p.Getenv("SIMCCL_MEMORY"); v != "" {
		n, err := units.ParseBytes(v)
		if err != nil || n <= 0 {
			return nil, fail.Usage("SIMCCL_MEMORY=%s: write how much memory inputs may take, as 4G", v)
		}
		limit = int64(n)
	}
	if room, ok := roomLeft(); ok {
		// A growing heap contains its old content, the copy of it, and garbage.
		const parts = 8
		limit = min(limit, max(room/parts, 1<<20))
	}
	return &bounded.Budget{Limit: limit, Held: heldNow}, nil
}

// heldNow returns the heap's bytes in use; exact runs the collector first.
func heldNow(exact bool) int64 {
	if exact {
		runtime.GC()
	}
	m := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(m)
	return int64(m[0].Value.Uint64()) - int64(len(ballast))
}

// KeepWithin sets Go's memory limit if the process may not use as much memory as Go's heap would grow to. It
// is called once, before any input is read.
func KeepWithin() {
	room, ok := roomLeft()
	if !ok || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	m := []metrics.Sample{{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	debug.SetMemoryLimit(int64(m[0].Value.Uint64()-m[1].Value.Uint64()) + room/2)
}

// roomLeft returns the number of bytes of address space that the process may still allocate; ok is false
// without a limit.
func roomLeft() (int64, bool) {
	limit, ok := addressLimit()
	if !ok {
		return 0, false
	}
	b, err := os.ReadFile("/proc/self/statm") // pages, the first number is those of addresses
	if err != nil {
		return 0, false
	}
	pages, _, _ := strings.Cut(string(b), " ")
	n, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return 0, false
	}
	return max(limit-n*int64(os.Getpagesize()), 0), true
}
