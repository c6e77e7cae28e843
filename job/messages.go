package job

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/workload"
)

// ownMessages returns a program in which each rank that issues a send or receive has its own Call for it: the
// time and links of a message depend on both its ranks, and a Call names only the other one. p is not
// changed; steps keep their numbers.
func ownMessages(p *workload.Program) *workload.Program {
	issuer := make([]int32, len(p.Calls)) // rank + 1 of the first issuer, by call
	q := p
	for rank := range p.Of {
		if !issues(p, int32(rank), issuer) {
			continue
		}
		if q == p {
			c := *p
			q = &c
			q.Calls, q.Lists, q.Marks, q.Of = slices.Clone(p.Calls), slices.Clone(p.Lists),
				slices.Clone(p.Marks), slices.Clone(p.Of)
		}
		rewrite(q, p, int32(rank), issuer)
	}
	return q
}

// issues records the messages that a rank issues, and reports whether another rank has issued one of them
// before.
func issues(p *workload.Program, rank int32, issuer []int32) (others bool) {
	steps := p.Lists[p.Of[rank]].Steps
	for i := range steps {
		s := &steps[i]
		if s.Kind != workload.Issue || !message(p.Calls[s.Call].Func) {
			continue
		}
		issuer[s.Call] = cmp.Or(issuer[s.Call], rank+1)
		others = others || issuer[s.Call] != rank+1
	}
	return others
}

// rewrite gives a rank a copy of its list that issues its own calls.
func rewrite(q, p *workload.Program, rank int32, issuer []int32) {
	of := p.Of[rank]
	list := workload.List{Name: p.Lists[of].Name, Steps: slices.Clone(p.Lists[of].Steps)}
	mine := map[int32]int32{}
	for i := range list.Steps {
		s := &list.Steps[i]
		if s.Kind != workload.Issue || !message(p.Calls[s.Call].Func) || issuer[s.Call] == rank+1 {
			continue
		}
		n, known := mine[s.Call]
		if !known {
			n = int32(len(q.Calls))
			q.Calls = append(q.Calls, p.Calls[s.Call])
			mine[s.Call] = n
		}
		s.Call = n
	}
	q.Of[rank] = int32(len(q.Lists))
	for _, m := range p.Marks {
		if m.List == of {
			q.Marks = append(q.Marks, workload.Mark{List: q.Of[rank], Step: m.Step, Name: m.Name})
		}
	}
	q.Lists = append(q.Lists, list)
}
