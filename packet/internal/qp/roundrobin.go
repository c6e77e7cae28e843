package qp

import (
	"github.com/simccl/simccl/packet/cc"
)

const never = int64(1<<63 - 1)

// RoundRobin is queue pairs of a host.
type RoundRobin struct {
	Only  *Sender // if there is one alone
	Last  int32   // served last
	Over  int32   // those of Pairs that have ended
	Pairs []int32 // flows that send, in the order they began
	ID    int32   // that of Only
	// Tabled: there is a ReadyTable, which records what changes.
	Tabled bool
	Age    int64 // how long before it the present event was planned, where rules are Timed
}

// Rules is what bounds queue pairs: their control, bytes of payload of a full frame, whether frames
// are trimmed, whether single frames are sent again, and whether windows follow rates that timers change.
type Rules struct {
	CC                *cc.Params
	Payload           int
	Trim, Gaps, Timed bool
}

// Bound reports whether a queue pair has as much in flight as it may, at an event at a time in ps that was
// planned age before.
func (r *Rules) Bound(s *Sender, now, age int64) bool {
	if s.Window == 0 || int64(s.Nxt-s.Una)*int64(r.Payload) < s.Window && !r.CC.VarWindow {
		return false
	}
	return s.Bound(r.CC, r.Payload, r.Trim, now, age)
}

// Add lists one more.
func (l *RoundRobin) Add(id int32, senders []Sender) {
	l.Pairs = append(l.Pairs, id)
	l.single(senders)
}

// single notes whether there is one alone.
func (l *RoundRobin) single(senders []Sender) {
	if l.Only, l.Tabled = nil, false; len(l.Pairs) == 1 {
		l.Only, l.ID = &senders[l.Pairs[0]], l.Pairs[0]
	}
}

// Choose returns the place of the next in turn that may send, with classes that are paused; or -1, and
// when pacing lets the first of them send. It drops those that have ended when it meets one that may not
// send.
func (l *RoundRobin) Choose(senders []Sender, rules *Rules, paused uint16, now int64) (found int,
	soon int64) {
	pairs, at, ended, soon := l.Pairs, int(l.Last)+1, -1, never
	for range pairs {
		if uint(at) >= uint(len(pairs)) {
			at %= len(pairs) // others may have left the list
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
				l.strike(senders, ended, -1) // and itself
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

// strike drops those that have ended, beginning with the one at a place, and returns where the one is then
// that was found at another, or found if that is negative.
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

// Overdue is when the first timeout may end, of so many ps; never if none runs.
func (l *RoundRobin) Overdue(senders []Sender, timeout int64) int64 {
	t := never
	for _, id := range l.Pairs {
		t = min(t, senders[id].Due(timeout))
	}
	return t
}

// Wants reports whether one has frames to send.
func (l *RoundRobin) Wants(senders []Sender) bool {
	for _, id := range l.Pairs {
		if s := &senders[id]; s.Nxt < s.Frames || s.HasGap() {
			return true
		}
	}
	return false
}
