package port

import (
	"math/bits"

	"github.com/simccl/simccl/sim/wire/packet/internal/instant"
)

// Soonest is the port of a switch whose frame starts first, and when; and when the second starts one. Of out, the
// links by port, busy has bits of those where frames may wait; bits of others are cleared. With a calendar, of two
// that start at once the first is the one whose frame before began first.
func Soonest(links []Link, out []int32, busy []uint64, calendar *instant.Calendar) (first *Link, t, second int64) {
	t, second = never, never
	for i, some := range busy {
		for ; some != 0; some &= some - 1 {
			p := bits.TrailingZeros64(some)
			l := &links[out[64*i+p]]
			switch {
			case l.Waiting == 0:
				busy[i] &^= 1 << p
			case l.Waiting&^l.Paused == 0:
			case l.Free < t || l.Free == t && calendar != nil && (l.Start < first.Start || l.Start == first.Start && calendar.First(l.Begun, first.Begun)):
				t, first, second = l.Free, l, t
			default:
				second = min(second, l.Free)
			}
		}
	}
	return first, t, second
}

// EndsFirst says that the frame in transmission ends before another that arrives at that instant, that began under a
// number and travels for so long: its end was planned first. Without a calendar the arrival is first.
func (l *Link) EndsFirst(calendar *instant.Calendar, travels int64, n instant.Number) bool {
	if calendar == nil {
		return false
	}
	lasts := l.Free - l.Start
	return lasts > travels || lasts == travels && calendar.First(l.Begun, n)
}
