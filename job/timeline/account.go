package timeline

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Account divides a rank's time, from the start to the end of the job's last rank; the parts add up to Total.
type Account struct {
	Compute units.Time // a compute kernel ran
	Moving  units.Time // no compute kernel ran, and a call moved data
	Bubble  units.Time // neither of both: a call's kernel waited for other ranks
	Host    units.Time // no kernel ran, and the host worked
	Idle    units.Time // the rest: neither GPU nor host was busy, or the rank had ended
	Total   units.Time
}

// Span is an interval of time.
type Span struct{ From, To units.Time }

// Account returns a rank's use of its time.
func (t *Timeline) Account(rank int) Account {
	var compute, moving, waiting, host []Span
	steps := t.r.Program.Lists[t.r.Program.Of[rank]].Steps
	for i := range steps {
		s, at := &steps[i], &t.r.Spans[rank][i]
		if at.End <= at.Begin {
			continue
		}
		switch {
		case s.Kind == workload.Issue:
			met := t.met(Place{int32(rank), int32(i)})
			moving = append(moving, Span{met, at.End})
			waiting = append(waiting, Span{at.Begin, met})
		case t.r.Program.Communicates(s):
			moving = append(moving, Span{at.Begin, at.End})
		case s.Kind != workload.Compute:
		case workload.OnHost(s.Stream):
			host = append(host, Span{at.Begin, at.End})
		default:
			compute = append(compute, Span{at.Begin, at.End})
		}
	}
	a := Account{Total: t.r.Elapsed()}
	busy := merge(compute)
	a.Compute = length(busy)
	for _, x := range []struct {
		list []Span
		to   *units.Time
	}{{moving, &a.Moving}, {waiting, &a.Bubble}, {host, &a.Host}} {
		before := length(busy)
		busy = merge(append(busy, x.list...))
		*x.to = length(busy) - before
	}
	a.Idle = max(a.Total-length(busy), 0)
	return a
}

// merge joins spans that overlap, in the order of time. It reorders the list.
func merge(list []Span) []Span {
	slices.SortFunc(list, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	n := 0
	for _, s := range list {
		switch {
		case s.To <= s.From:
		case n > 0 && s.From <= list[n-1].To:
			list[n-1].To = max(list[n-1].To, s.To)
		default:
			list[n] = s
			n++
		}
	}
	return list[:n]
}

// length returns the total length of merged spans.
func length(list []Span) (sum units.Time) {
	for _, s := range list {
		sum += s.To - s.From
	}
	return sum
}
