package qp

import (
	"github.com/simccl/simccl/packet/cc"
)

// Sender is the sending half of a queue pair.
//
// What each frame touches is in the first line of a cache, and with DCQCN in the second.
type Sender struct {
	Frames, Nxt, Una uint32 // data frames in all, the next, the first not acknowledged
	Class            uint8
	Ending, Ended    bool
	Gapped           bool  // Gaps is in use
	NextAvail        int64 // when pacing lets it send
	cc.Rate
	Window int64 // bytes; 0: none
	Route  uint32
	Last   uint16 // size of the frame sent last
	Listed bool   // of a Live run: among its host's queue pairs
	_      [1]byte

	Dcqcn   cc.Reaction
	Bytes   int64
	Retries int32
	Resent  uint32  // frames
	Moved   int64   // when Una last moved, or sending began; with Repair.Stubborn when the flow ended
	Gaps    SACKMap // to a whole line of a cache
}

// Receiver is the receiving half.
type Receiver struct {
	Expected uint32
	LastNak  uint32
	NakAt    int64 // before then no other NAK of the same frame
	Back     uint32
	CnpAt    int64  // no notification before then
	Came     Bitmap // frames above Expected that came, with selective repeat
	Forgot   bool   // see Forget
	_        [7]byte
}

// Forget begins anew at a time if the flow has ended at its sender before, the first time it is asked: a
// receiver of the HPCC simulator knows a flow until then, and takes what comes later for another.
func (r *Receiver) Forget(s *Sender, at int64) bool {
	if r.Forgot || !s.Ending || s.Moved >= at {
		return false
	}
	*r = Receiver{Back: r.Back, Forgot: true}
	return true
}

// What a data frame is that comes to a receiver.
const (
	Next    = iota // the one that was expected
	Apart          // kept out of order
	Again          // it came before
	Missing        // another is missing, for which it asks
	Silent         // as Missing, but it has asked not long ago
)

// Take notes a data frame that comes at a time, with selective repeat or one that was not expected, and says
// what it is. It asks for the same frame again after a gap in ps.
func (r *Receiver) Take(psn uint32, at int64, selective bool, gap int64) (what int) {
	switch {
	case selective && psn >= r.Expected:
		if psn != r.Expected {
			what = Apart
		}
		r.Expected = r.Came.Take(psn, r.Expected)
	case psn < r.Expected:
		return Again
	case at < r.NakAt && r.LastNak == r.Expected:
		return Silent
	default:
		r.NakAt, r.LastNak = at+gap, r.Expected
		return Missing
	}
	return what
}

// Notifies reports whether a receiver notifies its sender of congestion at a time: a gap in ps after it last
// did.
func (r *Receiver) Notifies(at, gap int64) bool {
	if at < r.CnpAt {
		return false
	}
	r.CnpAt = at + gap
	return true
}

// Advance moves Una.
func (s *Sender) Advance(to uint32) {
	if s.Gapped {
		s.Gaps.Advance(s.Una, to)
	}
	s.Una = to
}

// Reported handles a report that a frame came out of order.
func (s *Sender) Reported(psn, reorder uint32) {
	if psn >= s.Una && psn < s.Nxt {
		s.Gapped = true
		s.Gaps.Came(psn, s.Una, reorder)
	}
}

// Due is when the timeout ends; the most there is if none runs.
func (s *Sender) Due(timeout int64) int64 {
	if s.Una >= s.Nxt {
		return 1<<63 - 1
	}
	return s.Moved + timeout
}

// GivesUp counts a timeout; after so many in a row, if that is not 0, it sends no more.
func (s *Sender) GivesUp(now int64, most int32) bool {
	s.Moved, s.NextAvail = now, min(s.NextAvail, now)
	if s.Retries++; most == 0 || s.Retries <= most {
		return false
	}
	s.Una, s.Nxt, s.Ended, s.Ending = s.Frames, s.Frames, true, true
	return true
}

// Again sends what is on its way again: all of it, or what is missing, which is found later; it
// returns how many frames it sends at once.
func (s *Sender) Again(selective bool) int64 {
	if selective {
		s.Gapped = true
		s.Gaps.Lost(s.Una, s.Nxt)
		return 0
	}
	n := s.Nxt - min(s.Nxt, s.Una)
	s.Resent += n
	s.Nxt = s.Una
	return int64(n)
}

// Held reports whether its flow has ended, and its class is paused.
func (s *Sender) Held(paused uint16) bool { return s.Una >= s.Frames && paused>>s.Class&1 != 0 }

// Linger reports whether a sender whose flow has ended goes on with what it was sent back to, as no window
// keeps it from that; else it sends no more.
func (s *Sender) Linger() bool {
	if s.Nxt < s.Frames && s.Window > 0 { // less than nothing in flight is more than any window
		s.Nxt = s.Frames
	}
	return s.Nxt < s.Frames
}

// HasGap reports whether there is a frame to send again.
func (s *Sender) HasGap() bool {
	_, ok := s.Hole()
	return ok
}

// Hole is the next frame to send again.
func (s *Sender) Hole() (uint32, bool) {
	if !s.Gapped || !s.Gaps.Any(s.Una) {
		return 0, false
	}
	return s.Gaps.Missing(s.Una)
}

// Offset is the first byte of a data frame, of frames of so much payload.
func (s *Sender) Offset(psn uint32, payload int) int64 {
	return min(int64(psn)*int64(payload), s.Bytes)
}

// Flight is how many frames are on their way; apart from those that came out of order, or not at all,
// only if that is asked for.
func (s *Sender) Flight(apart bool) uint32 {
	n := s.Nxt - s.Una
	if apart && s.Gapped {
		n -= min(n, s.Gaps.Away())
	}
	return n
}

// Within is the window at the present rate.
func (s *Sender) Within(c *cc.Params) int64 {
	if !c.VarWindow {
		return s.Window
	}
	return max(1, int64(float64(s.Window)*float64(s.Rate.Rate)/float64(s.Line)))
}

// Bound reports whether as much is in flight as may be, at an event at a time in ps that was planned age
// before: a window that follows the rate is as large as the timers before that event left it.
func (s *Sender) Bound(c *cc.Params, payload int, apart bool, now, age int64) bool {
	w, flight := s.Window, int64(s.Nxt-s.Una)*int64(payload)
	if w == 0 || flight < w && !c.VarWindow {
		return false
	}
	if c.VarWindow {
		if c.Kind == cc.DCQCN {
			s.Dcqcn.Tick(c, &s.Rate, now, age)
		}
		w = s.Within(c)
	}
	if s.Nxt >= s.Frames { // the last frame may be short
		flight = s.Offset(s.Nxt, payload) - s.Offset(s.Una, payload)
	}
	if apart {
		flight -= int64(s.Nxt-s.Una-s.Flight(true)) * int64(payload)
	}
	return flight >= w
}
