// Package train keeps frames of one flow at equal gaps as one record, a train.
//
// In: frames and times. Out: records, parts of them, and the single frames again. It must not know links,
// hosts or what frames carry.
package train

import "github.com/simccl/simccl/packet/internal/frames"

type (
	frame = frames.Frame
	ring  = frames.Ring
)

// A train is a frame, the first, with the bit Many in its Class; Aux holds how many frames there are and, in
// its low bits, the ps from one to the next. Psn counts up by one.
const (
	Many    = 0x80
	gapBits = 22
	// MostGap is the longest gap, in ps.
	MostGap = 1<<gapBits - 1
	// Most is how many frames a train has at most.
	Most = 1<<(32-gapBits) - 1
)

// Is says that f is a train.
func Is(f *frame) bool { return f.Class&Many != 0 }

// Frames is how many frames f is.
func Frames(f *frame) int64 {
	if !Is(f) {
		return 1
	}
	return int64(f.Aux >> gapBits)
}

// Gap is the ps from a frame of a train to the next.
func Gap(f *frame) int64 { return int64(f.Aux & MostGap) }

// Last is when the last frame of f is at the end of the cable.
func Last(f *frame) int64 {
	if !Is(f) {
		return f.At
	}
	return f.At + int64(f.Aux>>gapBits-1)*Gap(f)
}

// Class is the class of the frames of f.
func Class(f *frame) uint8 { return f.Class &^ Many }

// Of makes a frame the first of so many, no more than Most, by gaps of no more than MostGap.
func Of(f *frame, n, gap int64) {
	f.Class |= Many
	f.Aux = uint32(n)<<gapBits | uint32(gap)
}

// Cut takes what is at the end of the cable before a time off a train, whose first frame is.
func Cut(f *frame, end int64) frame {
	n, gap := Frames(f), Gap(f)
	before := *f
	k := min(n, (end-1-f.At)/gap+1)
	Of(&before, k, gap)
	f.At, f.Psn = f.At+k*gap, f.Psn+uint32(k)
	Of(f, n-k, gap)
	return before
}

// Apart appends the frames of f.
func Apart(f *frame, into []frame) []frame {
	if !Is(f) {
		return append(into, *f)
	}
	one, gap := *f, Gap(f)
	one.Class, one.Aux = Class(f), 0
	for n := Frames(f); n > 0; n-- {
		into = append(into, one)
		one.At += gap
		one.Psn++
	}
	return into
}

// All appends the frames of some, in their order.
func All(some, into []frame) []frame {
	for i := range some {
		into = Apart(&some[i], into)
	}
	return into
}

// Unload takes the trains of a ring apart. What is before them stays where it is.
func Unload(q *ring) {
	at, m := q.Head, uint32(len(q.Buf)-1)
	for at != q.Tail && !Is(&q.Buf[at&m]) {
		at++
	}
	var some []frame
	for i := at; i != q.Tail; i++ {
		some = Apart(&q.Buf[i&m], some)
	}
	q.Tail = at
	for i := range some {
		q.Push(&some[i])
	}
}

// Push appends a train, or joins it to the last of the ring where it goes on with that, which is not there
// before a time.
func Push(q *ring, f *frame, from int64) (joined bool) {
	if !q.Empty() {
		if last := q.Last(); last.At >= from && follows(last, f) {
			Of(last, Frames(last)+Frames(f), Gap(f))
			return true
		}
	}
	q.Push(f)
	return false
}

// follows says that a train goes on with what a frame is, which may be no train.
func follows(last, f *frame) bool {
	n, gap := Frames(last), Gap(f)
	return Is(last) && Gap(last) == gap && last.Flow == f.Flow && last.Psn+uint32(n) == f.Psn &&
		last.Route == f.Route && last.Size == f.Size &&
		last.Flags == f.Flags && last.Class == f.Class && Last(last)+gap == f.At && n+Frames(f) <= Most
}

// Take moves what is at the end of the cable before a time to other frames. It returns how many trains have
// left the ring with it; of one that is cut a part is left.
func Take(q *ring, end int64, into []frame) (all []frame, trains int) {
	for !q.Empty() && q.Front().At < end {
		f := q.Front()
		if Is(f) {
			if Last(f) >= end {
				return append(into, Cut(f, end)), trains
			}
			trains++
		}
		into = append(into, *f)
		q.Head++
	}
	return into, trains
}

// Sending is a queue pair that sends so many frames one behind the other, each as long as the others, while
// some are acknowledged.
type Sending struct {
	Flow        int32
	Una, Nxt    uint32
	Most        int64 // frames in flight; 0: no bound
	Free, Lasts int64 // ps: when the first starts, and how long each lasts
	Frames      int64
}

// Within is how many frames of a payload a window in bytes allows in flight.
func Within(window, payload int64) int64 { return (window + payload - 1) / payload }

// Una is the first frame that is not acknowledged once all that has come is counted. ok: it is nothing but
// plain acknowledgements of the flow, and the bound of frames in flight delays none of those that are sent.
func Una(come []frame, s Sending, ack uint8) (una uint32, ok bool) {
	una = s.Una
	for i := range come {
		f := &come[i]
		if f.Flow != s.Flow || f.Flags != ack || s.held(una, f.At) {
			return una, false
		}
		if una = max(una, f.Psn); Is(f) { // of what it acknowledges until its end the first is sure
			if s.held(una, Last(f)) {
				return una, false
			}
			una = max(una, f.Psn+uint32(Frames(f)-1))
		}
	}
	return una, !s.held(una, s.Free+s.Frames*s.Lasts)
}

// held says that the bound delays a frame that would start before a time, if no more is acknowledged until
// then.
func (s *Sending) held(una uint32, before int64) bool {
	sent := min(s.Frames, (before-s.Free+s.Lasts-1)/s.Lasts)
	return s.Most > 0 && sent > 0 && int64(s.Nxt-una)+sent > s.Most
}

// Line is a port: when it is free, and how long a frame of a train lasts on it, in ps.
type Line struct{ Free, Lasts int64 }

// Takes says that a port takes a train, or a frame, that comes to it without a queue, and is busy with it
// from then on.
func (l *Line) Takes(f *frame) bool {
	if l.Free > f.At || Is(f) && l.Lasts > Gap(f) && Frames(f) > 1 {
		return false
	}
	l.Free = Last(f) + l.Lasts
	return true
}
