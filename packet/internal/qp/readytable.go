package qp

// ReadyTable copies NextAvail of a host's queue pairs into one array: choosing among many then reads few
// cache lines instead of one or two per queue pair. RoundRobin.Tabled is true while it is in use.
type ReadyTable struct {
	soon  []int64 // by place in the list; never: all sent
	place []int32 // by flow, shared by all hosts: place in its list
}

// NewReadyTable returns an empty table; place is memory that the tables of all hosts share.
func NewReadyTable(place []int32) ReadyTable { return ReadyTable{place: place} }

// many is the number of queue pairs from which on the table saves time.
const many = 8

// Choose picks the next queue pair that may send, as RoundRobin.Choose does.
func (t *ReadyTable) Choose(l *RoundRobin, senders []Sender, rules *Rules, paused uint16,
	now int64) (found int, soon int64) {
	if l.Over > 0 || paused != 0 {
		return l.Choose(senders, rules, paused, now)
	}
	pairs, from, bound := l.Pairs, int(l.Last)+1, false
	if from >= len(pairs) {
		from %= len(pairs)
	}
	soon = never
	for i, to := from, len(pairs); ; i, to = 0, from {
		times := t.soon[:min(to, len(t.soon), len(pairs))]
		for ; i < len(times); i++ {
			if at := times[i]; at > now {
				soon = min(soon, at)
			} else if !rules.Bound(&senders[pairs[i]], now, l.Age) {
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

// Fill starts using the table when no queue pair may send, if there are many and none has gaps or has ended.
func (t *ReadyTable) Fill(l *RoundRobin, senders []Sender, rules *Rules) {
	if len(l.Pairs) < many || l.Over > 0 || rules.Gaps {
		return
	}
	l.Tabled, t.soon = true, t.soon[:0]
	for i, id := range l.Pairs {
		t.soon = append(t.soon, 0)
		t.place[id] = int32(i)
		t.Note(l, id, &senders[id])
	}
}

// Note updates the table after a sender has changed.
func (t *ReadyTable) Note(l *RoundRobin, id int32, s *Sender) {
	if !l.Tabled {
		return
	}
	at := s.NextAvail
	if s.Nxt >= s.Frames {
		at = never
	}
	t.soon[t.place[id]] = at
}
