package turn

import "github.com/simccl/simccl/sim/wire/packet/internal/pair"

// Table has by pair of a list when pacing lets it send, side by side: what a host with many queue pairs looks at then lies
// in few lines of a cache. A list that is Tabled has one.
type Table struct {
	soon  []int64 // never: it has sent all
	place []int32 // by flow, of all lists: the place in its list
}

// NewTable is of a list, with memory for places by flow that all lists share.
func NewTable(place []int32) Table { return Table{place: place} }

// least is from how many pairs on a list has a table.
const least = 4

// Choose is that of a list, which has no pairs with gaps.
func (t *Table) Choose(l *List, senders []pair.Sender, rules *Rules, paused uint16, now int64) (found int, soon int64) {
	if len(l.Pairs) < least || l.Over > 0 || paused != 0 || rules.Gaps {
		return l.Choose(senders, rules, paused, now)
	}
	if !l.Tabled {
		t.fill(l, senders)
	}
	pairs, from, bound := l.Pairs, (int(l.Last)+1)%len(l.Pairs), false
	soon = never
	for i, to := from, len(pairs); ; i, to = 0, from {
		for ; i < to && i < len(t.soon) && i < len(pairs); i++ {
			if at := t.soon[i]; at > now {
				soon = min(soon, at)
			} else if !rules.Bound(&senders[pairs[i]], now) {
				return i, now
			} else {
				bound = true
			}
		}
		if to == from {
			break
		}
	}
	if bound {
		soon = now
	}
	return -1, soon
}

// fill makes the table of a list.
func (t *Table) fill(l *List, senders []pair.Sender) {
	l.Tabled, t.soon = true, t.soon[:0]
	for i, id := range l.Pairs {
		t.soon = append(t.soon, 0)
		t.place[id] = int32(i)
		t.Note(l, id, &senders[id])
	}
}

// Note takes note of a flow of a list whose sender has changed.
func (t *Table) Note(l *List, id int32, s *pair.Sender) {
	if !l.Tabled {
		return
	}
	at := s.NextAvail
	if s.Nxt >= s.Frames {
		at = never
	}
	t.soon[t.place[id]] = at
}
