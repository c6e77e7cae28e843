package job

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// RankSummary is a rank's use of its time.
type RankSummary struct {
	Compute units.Time // at least one compute kernel ran
	Comm    units.Time // at least one call's kernel ran or waited for other ranks
	Exposed units.Time // part of Comm during which no compute kernel ran
	Late    units.Time // sum over the calls' kernels of the time from launch to begin
	End     units.Time
	Streams []StreamSummary // in order of their numbers
}

// StreamSummary is the use of one stream.
type StreamSummary struct {
	Stream int32
	Busy   units.Time
	Steps  int
}

// CommSummary is the use of one communicator.
type CommSummary struct {
	Calls         int        // mean over members
	Bytes         int64      // mean over members: Count times the size of the type
	Busy, Exposed units.Time // means over members
}

// span is an interval of a rank's time.
type span struct{ from, to units.Time }

// merged sorts spans and joins those that overlap.
func merged(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	n := 0
	for _, s := range list {
		if n > 0 && s.from <= list[n-1].to {
			list[n-1].to = max(list[n-1].to, s.to)
			continue
		}
		list[n] = s
		n++
	}
	return list[:n]
}

func length(list []span) units.Time {
	var t units.Time
	for _, s := range list {
		t += s.to - s.from
	}
	return t
}

// outside returns the total length of a's spans where no span of b is. Both must be merged.
func outside(a, b []span) units.Time {
	t := length(a)
	for i, k := 0, 0; i < len(a) && k < len(b); {
		if from, to := max(a[i].from, b[k].from), min(a[i].to, b[k].to); to > from {
			t -= to - from
		}
		if a[i].to < b[k].to {
			i++
		} else {
			k++
		}
	}
	return t
}

// Rank summarizes a rank of the job.
func (r *Result) Rank(rank int) RankSummary {
	steps := r.Program.Lists[r.Program.Of[rank]].Steps
	out := RankSummary{End: r.Finish[rank]}
	var compute, comm []span
	streams := map[int32]*StreamSummary{}
	for i := range steps {
		s, at := &steps[i], &r.Spans[rank][i]
		if at.End <= at.Begin || s.Kind != workload.Compute && s.Kind != workload.Issue {
			continue
		}
		x := streams[s.Stream]
		if x == nil {
			x = &StreamSummary{Stream: s.Stream}
			streams[s.Stream] = x
		}
		x.Busy += at.End - at.Begin
		x.Steps++
		switch {
		case r.Program.Communicates(s):
			comm = append(comm, span{at.Begin, at.End})
		case s.Kind == workload.Issue:
			comm = append(comm, span{at.Begin, at.End})
			out.Late += at.Begin - at.Issued
		case !workload.OnHost(s.Stream):
			compute = append(compute, span{at.Begin, at.End})
		}
	}
	for _, x := range streams { //lint:sorted the list is sorted below
		out.Streams = append(out.Streams, *x)
	}
	slices.SortFunc(out.Streams, func(a, b StreamSummary) int { return cmp.Compare(a.Stream, b.Stream) })
	compute, comm = merged(compute), merged(comm)
	out.Compute, out.Comm, out.Exposed = length(compute), length(comm), outside(comm, compute)
	return out
}

// Comm summarizes a communicator of the job.
func (r *Result) Comm(index int) CommSummary {
	var out CommSummary
	c := &r.Program.Comms[index]
	n := c.Size(r.Program.Ranks())
	for i := range n {
		rank := c.Rank(int32(i))
		steps := r.Program.Lists[r.Program.Of[rank]].Steps
		var compute, comm []span
		for k := range steps {
			s, at := &steps[k], &r.Spans[rank][k]
			switch {
			case s.Kind == workload.Compute && !workload.OnHost(s.Stream) && !r.Program.Communicates(s):
				compute = append(compute, span{at.Begin, at.End})
			case s.Kind == workload.Issue && r.Program.Calls[s.Call].Comm == int32(index):
				comm = append(comm, span{at.Begin, at.End})
				out.Calls++
				out.Bytes += int64(r.Program.Calls[s.Call].Bytes())
			}
		}
		compute, comm = merged(compute), merged(comm)
		out.Busy += length(comm)
		out.Exposed += outside(comm, compute)
	}
	out.Calls, out.Bytes = out.Calls/n, out.Bytes/int64(n)
	out.Busy, out.Exposed = out.Busy/units.Time(n), out.Exposed/units.Time(n)
	return out
}
