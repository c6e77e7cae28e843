package transform

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
)

// DataParallel changes the size of data parallel groups to n by replicating the whole job: replica j of rank
// r is rank r + j·ranks. Data parallel communicators span all replicas; each replica has its own copy of the
// others. The size of a DDP group's reductions is unchanged; shards of an FSDP group shrink with the number
// of ranks, rounded up. Groups that recordings do not describe count as data parallel if they span all ranks.
func DataParallel(p *workload.Program, n int) (*workload.Program, error) {
	s := scaler{p: p, q: &workload.Program{Works: slices.Clone(p.Works), GPU: p.GPU}, w: int32(len(p.Of))}
	size := 0
	for i := range p.Comms {
		if s.spans(int32(i)) {
			size = max(size, p.Comms[i].Size(len(p.Of)))
		}
	}
	switch {
	case size == 0:
		return nil, &Error{"the job has no data parallel group",
			"TP, PP and CP change what ranks compute: generate the job anew with simccl workload gen"}
	case n < size || n%size != 0 || n/size*len(p.Of) > 1<<24:
		return nil, &Error{fmt.Sprintf("data parallel groups of %d ranks cannot become %d", size, n),
			fmt.Sprintf("give a multiple of %d", size)}
	case n == size:
		return clone(p), nil
	}
	s.k = int32(n / size)
	s.q.Model = p.Model
	s.q.Model.Tokens *= int64(s.k)
	if !slices.ContainsFunc(p.Comms, func(c workload.Comm) bool { return c.Kind == workload.FSDP }) {
		s.q.Memory = p.Memory // without FSDP a rank's memory does not depend on the number of replicas
	}
	s.comms()
	shared := true // every call is on a communicator of all replicas
	for i := range p.Calls {
		shared = shared && s.own[p.Calls[i].Comm] < 0 && !message(&p.Calls[i])
	}
	replicas := s.k
	if shared {
		replicas = 1
	}
	s.alone()
	for j := range replicas {
		s.replica(j)
	}
	s.together(replicas)
	for j := range s.k {
		for r := range p.Of {
			i := p.Of[r]
			if !shared {
				i = i*s.k + j
			}
			s.q.Of = append(s.q.Of, i)
			if p.Factor != nil {
				s.q.Factor = append(s.q.Factor, p.Factor[r])
			}
		}
	}
	return prune(s.q), nil
}

func message(c *workload.Call) bool { return c.Func == coll.Send || c.Func == coll.Recv }

type scaler struct {
	p, q *workload.Program
	w    int32 // ranks of the job as it is
	k    int32 // replicas
	span []int32
	rank []int32 // by list: its only rank, -1 for several or none
	own  []int32 // first of the communicators that exist once a replica; -1 for those that span only
}

// spans reports whether a communicator is data parallel, so that it spans the replicas.
func (s *scaler) spans(i int32) bool {
	c := &s.p.Comms[i]
	switch c.Kind {
	case workload.DP, workload.FSDP:
		return true
	case workload.NoKind:
		if c.Size(len(s.p.Of)) != len(s.p.Of) {
			return false
		}
		for k := range s.p.Calls {
			if s.p.Calls[k].Comm == i && !message(&s.p.Calls[k]) {
				return true
			}
		}
	}
	return false
}

// comms builds the communicators of the larger job.
func (s *scaler) comms() {
	s.span, s.own = make([]int32, len(s.p.Comms)), make([]int32, len(s.p.Comms))
	for i := range s.p.Comms {
		c := s.p.Comms[i]
		c.Parent, c.Share = 0, false
		members := c.Ranks
		if members == nil {
			for r := range s.w {
				members = append(members, r)
			}
		}
		s.span[i], s.own[i] = -1, -1
		if s.spans(int32(i)) {
			s.span[i] = int32(len(s.q.Comms))
			wide := c
			if c.Ranks != nil {
				wide.Ranks = nil
				for j := range s.k {
					for _, m := range members {
						wide.Ranks = append(wide.Ranks, m+j*s.w)
					}
				}
			}
			s.q.Comms = append(s.q.Comms, wide)
			if !slices.ContainsFunc(s.p.Calls, func(x workload.Call) bool {
				return int(x.Comm) == i && message(&x)
			}) {
				continue
			}
		}
		s.own[i] = int32(len(s.q.Comms))
		for j := range s.k {
			one := c
			one.Name = fmt.Sprintf("%s@%d", c.Name, j)
			one.Ranks = nil
			for _, m := range members {
				one.Ranks = append(one.Ranks, m+j*s.w)
			}
			s.q.Comms = append(s.q.Comms, one)
		}
	}
}

// alone sets s.rank: for each list the one rank that uses it, or a mark if several do.
func (s *scaler) alone() {
	s.rank = slices.Repeat([]int32{-1}, len(s.p.Lists))
	seen := make([]bool, len(s.p.Lists))
	for r, i := range s.p.Of {
		if s.rank[i] = int32(r); seen[i] {
			s.rank[i] = -1
		}
		seen[i] = true
	}
}

// together places the replicas' copies of each list next to each other, so that Fold can merge them.
func (s *scaler) together(replicas int32) {
	n := int32(len(s.p.Lists))
	lists := make([]workload.List, len(s.q.Lists))
	for at := range s.q.Lists {
		lists[int32(at)%n*replicas+int32(at)/n] = s.q.Lists[at]
	}
	s.q.Lists = lists
	for i := range s.q.Marks {
		m := &s.q.Marks[i]
		m.List = m.List%n*replicas + m.List/n
	}
}

// replica appends the lists and calls of replica j.
func (s *scaler) replica(j int32) {
	base := int32(len(s.q.Calls))
	for i := range s.p.Calls {
		c := s.p.Calls[i]
		comm := &s.p.Comms[c.Comm]
		if at := s.span[c.Comm]; at >= 0 && !message(&c) {
			if comm.Kind == workload.FSDP && (c.Func == coll.AllGather || c.Func == coll.ReduceScatter) {
				c.Count = (c.Count + int64(s.k) - 1) / int64(s.k)
			}
			c.Recorded, c.Comm = 0, at
			if c.Splits != nil {
				c.Splits = nil
			}
		} else {
			c.Comm = s.own[c.Comm] + j
		}
		s.q.Calls = append(s.q.Calls, c)
	}
	lists := int32(len(s.q.Lists))
	for i := range s.p.Lists {
		l := workload.List{Name: s.p.Lists[i].Name, Steps: slices.Clone(s.p.Lists[i].Steps)}
		switch r := s.rank[i]; {
		case j == 0:
		case r >= 0 && strings.HasSuffix(l.Name, strconv.Itoa(int(r))): // named by its rank
			l.Name = strings.TrimSuffix(l.Name, strconv.Itoa(int(r))) + strconv.Itoa(int(r+j*s.w))
		default:
			l.Name = fmt.Sprintf("%s@%d", l.Name, j)
		}
		for k := range l.Steps {
			if l.Steps[k].Kind == workload.Issue {
				l.Steps[k].Call += base
			}
		}
		s.q.Lists = append(s.q.Lists, l)
	}
	for _, m := range s.p.Marks {
		m.List += lists
		s.q.Marks = append(s.q.Marks, m)
	}
}
