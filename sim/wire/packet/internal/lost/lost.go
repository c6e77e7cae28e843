// Package lost puts frames in the order in which it is drawn whether they are lost.
//
// In: frames that arrive, and when they began. Out: their order. It must not draw.
package lost

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
)

// Frame is a frame that arrives in this window.
type Frame struct {
	At, Travel int64 // ps: when it arrives, and for how long it was on its way
	Link       int32
	Wire       uint32 // its place on the link
	Began      instant.Number
}

// Order puts frames in the order of their arrivals; of one instant, that which was on its way the longest
// is first, then that which began first.
func Order(all []Frame, c *instant.Calendar) {
	slices.SortStableFunc(all, func(a, b Frame) int {
		if d := cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.Travel, a.Travel)); d != 0 {
			return d
		}
		return c.Order(a.Began, b.Began)
	})
}
