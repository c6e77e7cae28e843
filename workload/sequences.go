package workload

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/coll"
)

// issue is a call of a list on a communicator.
type issue struct{ comm, call int32 }

// issues lists what a list calls, by communicator, then in order.
func (p *Program) issues(list int32) []issue {
	var out []issue
	for i := range p.Lists[list].Steps {
		if s := &p.Lists[list].Steps[i]; s.Kind == Issue {
			out = append(out, issue{p.Calls[s.Call].Comm, s.Call})
		}
	}
	slices.SortStableFunc(out, func(a, b issue) int { return cmp.Compare(a.comm, b.comm) })
	return out
}

// on returns the issues of one communicator; all is sorted by communicator.
func on(all []issue, comm int32) []issue {
	at, _ := slices.BinarySearchFunc(all, comm, func(i issue, c int32) int { return cmp.Compare(i.comm, c) })
	end := at
	for end < len(all) && all[end].comm == comm {
		end++
	}
	return all[at:end]
}

// sequences compares what the members of each communicator issue on it: each
// list's collectives on it in order must be the same, and each send has its
// receive.
func (l *linter) sequences() {
	p := l.p
	issued := make([][]issue, len(p.Lists))
	for i := range p.Lists {
		issued[i] = p.issues(int32(i))
	}
	ranksOf := make([][]int32, len(p.Lists)) // by list
	for r, i := range p.Of {
		ranksOf[i] = append(ranksOf[i], int32(r))
	}
	callers := make([][]int32, len(p.Comms)) // lists that call on it
	for i := range issued {
		for k, x := range issued[i] {
			if k == 0 || issued[i][k-1].comm != x.comm {
				callers[x.comm] = append(callers[x.comm], int32(i))
			}
		}
	}
	member := make([]int32, len(p.Of)) // comm + 1 that has the rank
	for c := range p.Comms {
		ref := int32(-1)
		checked := map[int32]bool{}
		for r := range p.Comms[c].Size(len(p.Of)) {
			rank := p.Comms[c].Rank(int32(r))
			member[rank] = int32(c) + 1
			at := p.Of[rank]
			if checked[at] {
				continue
			}
			checked[at] = true
			if ref < 0 {
				ref = at
				continue
			}
			l.same(int32(c), ref, at, on(issued[ref], int32(c)), on(issued[at], int32(c)))
		}
		l.nonMembers(int32(c), callers[c], ranksOf, member, checked)
		l.messages(int32(c), issued)
	}
}

// nonMembers finds ranks that call on a communicator and are no members of it.
func (l *linter) nonMembers(c int32, callers []int32, ranksOf [][]int32, member []int32,
	checked map[int32]bool) {
	for _, list := range callers {
		for _, r := range ranksOf[list] {
			if member[r] == c+1 {
				continue
			}
			if checked[list] {
				l.add(int(list), -1, "rank %d has the list of a member of communicator %s and is none", r,
					l.p.Comms[c].Name)
			} else {
				l.add(int(list), -1, "rank %d calls on communicator %s and is no member of it", r,
					l.p.Comms[c].Name)
			}
			break
		}
	}
}

// same compares two lists' collectives on a communicator and names the first that
// differs.
func (l *linter) same(c, a, b int32, x, y []issue) {
	name := l.p.Comms[c].Name
	i, j, n := 0, 0, 0
	for ; ; i, j, n = i+1, j+1, n+1 {
		i, j = l.collective(x, i), l.collective(y, j)
		if i == len(x) || j == len(y) {
			break
		}
		if p, q := &l.p.Calls[x[i].call], &l.p.Calls[y[j].call]; !p.Matches(q) {
			l.add(int(b), -1,
				"call %d on %s is %s, but %s in list %s; the members would wait for each other forever", n,
				name, describe(q), describe(p), l.p.Lists[a].Name)
			return
		}
	}
	if i < len(x) || j < len(y) {
		nx, ny := n+l.collectives(x[i:]), n+l.collectives(y[j:])
		l.add(int(b), -1, "%d calls on %s, but %d in list %s; the members would wait for each other forever",
			ny, name, nx, l.p.Lists[a].Name)
	}
}

// collective returns the position of the next collective at or after i.
func (l *linter) collective(x []issue, i int) int {
	for i < len(x) && message(l.p.Calls[x[i].call].Func) {
		i++
	}
	return i
}

func (l *linter) collectives(x []issue) int {
	n := 0
	for _, i := range x {
		if !message(l.p.Calls[i.call].Func) {
			n++
		}
	}
	return n
}

// half is one half of a message between two ranks of a communicator.
type half struct {
	src, dst int32
	call     int32
}

// messages compares sends and receives by pair of ranks: the k-th send from one to
// another is for the k-th receive there, of as many bytes.
func (l *linter) messages(c int32, issued [][]issue) {
	p := l.p
	var sends, recvs []half
	for r := range int32(p.Comms[c].Size(len(p.Of))) {
		for _, i := range on(issued[p.Of[p.Comms[c].Rank(r)]], c) {
			switch x := &p.Calls[i.call]; x.Func {
			case coll.Send:
				sends = append(sends, half{r, x.Peer, i.call})
			case coll.Recv:
				recvs = append(recvs, half{x.Peer, r, i.call})
			}
		}
	}
	pair := func(a, b half) int { return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst)) }
	slices.SortStableFunc(sends, pair)
	slices.SortStableFunc(recvs, pair)
	name := p.Comms[c].Name
	for i := range min(len(sends), len(recvs)) {
		if d := pair(sends[i], recvs[i]); d != 0 {
			if d < 0 {
				l.add(-1, -1, "rank %d of %s sends to rank %d, which does not receive it", sends[i].src, name,
					sends[i].dst)
			} else {
				l.add(-1, -1, "rank %d of %s receives from rank %d, which does not send it", recvs[i].dst,
					name, recvs[i].src)
			}
			return
		}
		if s, r := &p.Calls[sends[i].call], &p.Calls[recvs[i].call]; s.Bytes() != r.Bytes() {
			l.add(-1, -1, "rank %d of %s sends %d bytes to rank %d, which receives %d", sends[i].src, name,
				s.Bytes(), sends[i].dst, r.Bytes())
			return
		}
	}
	switch n := min(len(sends), len(recvs)); {
	case len(sends) > n:
		l.add(-1, -1, "rank %d of %s sends to rank %d, which does not receive it", sends[n].src, name,
			sends[n].dst)
	case len(recvs) > n:
		l.add(-1, -1, "rank %d of %s receives from rank %d, which does not send it", recvs[n].dst, name,
			recvs[n].src)
	}
}
