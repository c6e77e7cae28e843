package host

import (
	"testing"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// TestStripesDivideTheCards: a message over a net of four cards is cut into as many parts as there are whole
// stripes of 128 KiB, rounded up, and such that their number divides four (aws-ofi-nccl,
// nccl_ofi_scheduler.cpp:30): three stripes go to two cards. A connection that one card holds is not cut.
func TestStripesDivideTheCards(t *testing.T) {
	const card, stripe = wire.Rate(100), 128 << 10
	r := &rdma{card: card, stripe: stripe}
	for _, c := range []struct {
		cards wire.Rate
		bytes units.Bytes
		want  wire.Rate // in cards
	}{
		{4, 1, 1}, {4, stripe, 1}, {4, stripe + 1, 2}, {4, 2 * stripe, 2}, {4, 2*stripe + 1, 2},
		{4, 3 * stripe, 2},
		{4, 3*stripe + 1, 4}, {4, 100 * stripe, 4},
		{6, 3 * stripe, 3}, {6, 4 * stripe, 3}, {6, 5 * stripe, 3}, {6, 6 * stripe, 6},
		{1, 100 * stripe, 1},
	} {
		if got := r.rate(&QueuePair{bound: c.cards * card}, c.bytes); got != c.want*card {
			t.Errorf("%d bytes over %d cards: at the rate of %g, want %d", c.bytes, c.cards, float64(got)/100,
				c.want)
		}
	}
}
