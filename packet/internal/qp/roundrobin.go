package qp

import (
	"github.com/simccl/simccl/packet/cc"
)

const never = int64(1<<63 - 1)

// RoundRobin is the list of a host's queue pairs that have not ended.
type RoundRobin struct {
	Only  *Sender // the single queue pair, if there is just one
	Last  int32   // index in Pairs of the queue pair served last
	Over  int32   // number of queue pairs in Pairs that have ended
	Pairs []int32 // flows in the order of their starts
	ID    int32   // flow of Only
	// a ReadyTable mirrors the list
	Tabled bool
	Age    int64 // with Rules.Timed: how long before now (ps) the present event was scheduled
}

// Rules are the limits on senders. Gaps: single frames are retransmitted; Timed: windows follow rates that
// timers change.
type Rules struct {
	CC                *cc.Params
	Payload           int
	Trim, Gaps, Timed bool
}

// Bound is Sender.Bound with its common case inlined.
func (r *Rules) Bound(s *Sender, now, age int64) bool {
	if s.Window == 0 || int64(s.Nxt-s.Una)*int64(r.Payload) < s.Window && !r.CC.VarWindow {
		return false
	}
	return s.Bound(r.CC, r.Payload, r.Trim, now, age)
}

func (l *RoundRobin) Add(id int32, senders []Sender) {
	l.Pairs = append(l.Pairs, id)
	l.single(senders)
}

// single updates Only.
func (l *RoundRobin) single(senders []Sender) {
	if l.Only, l.Tabled = nil, false; len(l.Pairs) == 1 {
		l.Only, l.ID = &senders[l.Pairs[0]], l.Pairs[0]
	}
}

// Choose returns the index in Pairs of the next queue pair after Last that may send; or -1 and the time at
// which pacing allows the first. paused has a bit for each paused class. Queue pairs that have ended are
// removed when the search meets one that may not send.
func (l *RoundRobin) Choose(senders []Sender, rules *Rules, paused uint16, now int64) (found int,
	soon int64) {
	pairs, at, ended, soon := l.Pairs, int(l.Last)+1, -1, never
	for range pairs {
		if uint(at) >= uint(len(pairs)) {
			at %= len(pairs) // other queue pairs may have left the list
		}
		s := &senders[pairs[at]]
		gap := s.Gapped && s.HasGap()
		switch {
		case !gap && s.Nxt >= s.Frames:
			if s.Una >= s.Frames && (ended < 0 || at < ended) {
				ended = at
			}
		case s.NextAvail > now && (paused == 0 || !s.Held(paused)):
			soon = min(soon, s.NextAvail)
		default:
			if paused>>s.Class&1 == 0 && (gap && !rules.Trim || !rules.Bound(s, now, l.Age)) {
				if ended < 0 {
					return at, now
				}
				if s.Una < s.Frames || at < ended {
					return l.strike(senders, ended, at), now
				}
				l.strike(senders, ended, -1) // and the queue pair itself
				return l.Choose(senders, rules, paused, now)
			}
			if s.Una < s.Frames {
				soon = now
			} else if ended < 0 || at < ended {
				ended = at
			}
		}
		at++
	}
	if ended >= 0 {
		l.strike(senders, ended, -1)
	}
	return -1, soon
}

// strike removes the queue pairs that have ended, from index ended on, and returns the new index of the one
// at found.
func (l *RoundRobin) strike(senders []Sender, ended, found int) (at int) {
	k := ended
	for i := ended; i < len(l.Pairs); i++ {
		if s := &senders[l.Pairs[i]]; s.Una < s.Frames {
			if i == found {
				found = k
			}
			l.Pairs[k] = l.Pairs[i]
			k++
		} else {
			s.Listed = false
		}
	}
	l.Over -= int32(len(l.Pairs) - k)
	l.Pairs = l.Pairs[:k]
	l.single(senders)
	return found
}

// Overdue returns when the first timeout expires; never if none runs.
func (l *RoundRobin) Overdue(senders []Sender, timeout int64) int64 {
	t := never
	for _, id := range l.Pairs {
		t = min(t, senders[id].Due(timeout))
	}
	return t
}

// Wants reports whether any queue pair has frames to send.
func (l *RoundRobin) Wants(senders []Sender) bool {
	for _, id := range l.Pairs {
		if s := &senders[id]; s.Nxt < s.Frames || s.HasGap() {
			return true
		}
	}
	return false
}
