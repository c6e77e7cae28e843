package qp

import (
	"cmp"
	"slices"
)

// Delivered is messages that have arrived, in order of time once they were sorted.
type Delivered struct {
	all   []landing
	given int
}

// landing is the arrival of a message's last frame, in ps.
type landing struct {
	at    int64
	token int32
}

// Clear forgets all.
func (l *Delivered) Clear() { l.all, l.given = l.all[:0], 0 }

// Take adds the messages that are complete with a frame that arrives at a time.
func (l *Delivered) Take(m *Messages, psn uint32, selective bool, at int64) {
	m.Come(psn, selective)
	for token, ok := m.Arrived(); ok; token, ok = m.Arrived() {
		l.all = append(l.all, landing{at, token})
	}
}

// Sort puts them in order of time.
func (l *Delivered) Sort() {
	if len(l.all) > 1 {
		slices.SortStableFunc(l.all, func(a, b landing) int { return cmp.Compare(a.at, b.at) })
	}
}

// Next is when the first did that was not taken, or end if that is before.
func (l *Delivered) Next(end int64) int64 {
	if l.given < len(l.all) {
		return min(l.all[l.given].at, end)
	}
	return end
}

// Until appends those that arrived up to a time.
func (l *Delivered) Until(now int64, done []int32) []int32 {
	for ; l.given < len(l.all) && l.all[l.given].at <= now; l.given++ {
		done = append(done, l.all[l.given].token)
	}
	return done
}
