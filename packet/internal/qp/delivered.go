package qp

import (
	"cmp"
	"slices"
)

// Delivered collects the messages that complete in a window.
type Delivered struct {
	all   []landing
	given int // number of messages that Until has returned
}

// landing is a message's arrival: time in ps, and token.
type landing struct {
	at    int64
	token int32
}

func (l *Delivered) Clear() { l.all, l.given = l.all[:0], 0 }

// Take adds the messages that data frame psn completes, which arrives at a time (ps).
func (l *Delivered) Take(m *Messages, psn uint32, selective bool, at int64) {
	m.Come(psn, selective)
	for token, ok := m.Arrived(); ok; token, ok = m.Arrived() {
		l.all = append(l.all, landing{at, token})
	}
}

// Sort sorts the messages by arrival.
func (l *Delivered) Sort() {
	if len(l.all) > 1 {
		slices.SortStableFunc(l.all, func(a, b landing) int { return cmp.Compare(a.at, b.at) })
	}
}

// Next returns the first arrival that Until has not returned, or end if that is earlier.
func (l *Delivered) Next(end int64) int64 {
	if l.given < len(l.all) {
		return min(l.all[l.given].at, end)
	}
	return end
}

// Until appends the tokens of the messages that have arrived by now (ps).
func (l *Delivered) Until(now int64, done []int32) []int32 {
	for ; l.given < len(l.all) && l.all[l.given].at <= now; l.given++ {
		done = append(done, l.all[l.given].token)
	}
	return done
}
