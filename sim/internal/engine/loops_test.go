package engine

import (
	"testing"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/units"
)

// TestLoopsAreKeptBySize: what a slice's loops cost on top is that of its own size and kind, whatever sizes
// were asked for before it and share its place.
func TestLoopsAreKeptBySize(t *testing.T) {
	class := gpu.ClassFor(90, true, true, false)
	e := &Engine{Class: &class, kinds: make([]kind, 2)}
	loads := gpu.Pass{Loads: 2, Stores: 1, User: true, Elem: 4}
	copies := gpu.Pass{Loads: 1, Local: true, Elem: 4}
	differ := map[float64]bool{}
	for range 2 {
		for _, bytes := range []units.Bytes{0, 16, 4096, 4096 + 16*keptSizes, 100_000, 100_001, 1 << 20} {
			for k, pass := range []gpu.Pass{loads, copies} {
				g := &Group{Program: plan.Program{Workers: 512}, Bytes: bytes, pass: pass, pack: 16,
					kind: int8(k)}
				want := class.LoopsOverhead(pass, 512, int64(bytes), 16)
				if got := e.loopsOverhead(g); got != want {
					t.Errorf("%d bytes of kind %d: %v us, want %v", bytes, k, got, want)
				}
				differ[want] = true
			}
		}
	}
	if len(differ) < 4 {
		t.Errorf("only %d costs differ", len(differ))
	}
}
