package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/transform"
)

// Bounds are lower bounds of an iteration's time, in microseconds.
type Bounds struct {
	// ComputeUs is the time that the busiest stream of any rank computes, without concurrent work.
	ComputeUs   float64 `json:"computeUs"`
	ComputeRank int     `json:"computeRank"`
	// LinkUs is the time that the busiest link needs for its bytes; 0 if links are not simulated.
	LinkUs float64 `json:"linkUs"`
	Link   string  `json:"link,omitempty"`
	// PathUs is the critical path with calls that take no time and kernels that do not slow each other: the
	// iteration on an ideal network. 0 if it was not computed.
	PathUs float64 `json:"pathUs"`
}

// Rank is the division of a rank's iteration time, in microseconds.
type Rank struct {
	Rank      int     `json:"rank"`
	ComputeUs float64 `json:"computeUs"`
	MovingUs  float64 `json:"movingUs"` // a call moves data and no kernel computes
	BubbleUs  float64 `json:"bubbleUs"` // calls wait for other ranks, nothing else runs
	HostUs    float64 `json:"hostUs"`   // the GPU has nothing, the host works
	IdleUs    float64 `json:"idleUs"`   // neither does, or the rank is through before others
}

// Share is a part of the critical path, of an iteration.
type Share struct {
	What string  `json:"what"` // compute, host, waiting for SMs, or a group
	Us   float64 `json:"us"`
}

// what names a part of the critical path.
func what(p *workload.Program, s timeline.Share) string {
	switch s.Kind {
	case timeline.Computing:
		return "compute"
	case timeline.Hosting:
		return "host"
	case timeline.Queued:
		return "waiting for SMs"
	case timeline.Unknown:
		return "calls without sizes"
	}
	return p.Comms[s.Comm].Name
}

// idealSteps bounds the jobs that run a second time on an ideal network, in steps of all
// ranks.
const idealSteps = 2 << 20

// bounds sets r.Bounds and r.BoundUs: compute of the busiest rank, the busiest link, and the critical path on
// an ideal network.
func (r *Report) bounds(ctx context.Context, p *workload.Program, m *job.Machine, res *job.Result,
	o Options) error {
	steps := float64(len(r.Steps))
	for i := range res.Links {
		l := &res.Links[i]
		if l.Capacity <= 0 {
			continue
		}
		if v := us(l.Ideal()) / steps; v > r.Bounds.LinkUs {
			r.Bounds.LinkUs, r.Bounds.Link = v, l.Name
		}
	}
	compute := r.computeBound(p, o.At)
	count := 0
	for _, of := range p.Of {
		count += len(p.Lists[of].Steps)
	}
	if count > idealSteps {
		r.Notes = append(r.Notes,
			fmt.Sprintf("jobs of more than %d steps are not run on an ideal network for their bounds; "+
				"--ideal all does", idealSteps))
		r.BoundUs = max(compute, r.Bounds.LinkUs)
		return nil
	}
	all := make([]bool, len(p.Comms))
	for i := range all {
		all[i] = true
	}
	ideal, err := m.Run(ctx, p, job.Options{Apart: true, Free: all})
	if err != nil {
		return err
	}
	_, sums := iterations(ideal, o)
	for _, s := range sums {
		r.Bounds.PathUs += s / float64(len(sums))
	}
	r.BoundUs = max(compute, r.Bounds.LinkUs, r.Bounds.PathUs)
	return nil
}

// computeBound returns the compute time of the rank whose busiest stream computes longest; at is the position
// of each rank. The result bounds the mean iteration: ranks connected by calls take as long as the slowest of
// them, in a job without calls each rank takes its own time.
func (r *Report) computeBound(p *workload.Program, at []int32) float64 {
	longest := make([]units.Time, len(p.Lists))
	for i := range p.Lists {
		streams := map[int32]units.Time{}
		for k := range p.Lists[i].Steps {
			if s := &p.Lists[i].Steps[k]; s.Kind == workload.Compute && !workload.OnHost(s.Stream) &&
				!p.Communicates(s) {
				streams[s.Stream] += s.Time
				longest[i] = max(longest[i], streams[s.Stream])
			}
		}
	}
	joined, sum := joins(p), 0.0
	slowest := make([]float64, len(p.Of)) // by the first rank of those that are joined
	for rank := range p.Of {
		place := rank
		if at != nil {
			place = int(at[rank])
		}
		v := us(longest[p.Of[place]]) * p.FactorOf(place) / float64(len(r.Steps))
		if v > r.Bounds.ComputeUs {
			r.Bounds.ComputeUs, r.Bounds.ComputeRank = v, rank
		}
		slowest[joined[place]] = max(slowest[joined[place]], v)
	}
	for place := range p.Of {
		sum += slowest[joined[place]]
	}
	return sum / float64(max(len(p.Of), 1))
}

// joins returns, for each rank's position, the least position that is connected with it through calls.
func joins(p *workload.Program) []int32 {
	least := make([]int32, len(p.Of))
	for i := range least {
		least[i] = int32(i)
	}
	root := func(i int32) int32 {
		for least[i] != i {
			least[i] = least[least[i]]
			i = least[i]
		}
		return i
	}
	used := make([]bool, len(p.Comms))
	for i := range p.Lists {
		for k := range p.Lists[i].Steps {
			if s := &p.Lists[i].Steps[k]; s.Kind == workload.Issue {
				used[p.Calls[s.Call].Comm] = true
			}
		}
	}
	for i := range p.Comms {
		c := &p.Comms[i]
		for k := 1; used[i] && k < c.Size(len(p.Of)); k++ {
			a, b := root(c.Rank(int32(k-1))), root(c.Rank(int32(k)))
			least[max(a, b)] = min(a, b)
		}
	}
	for i := range least {
		least[i] = root(int32(i))
	}
	return least
}

// Ideal is the time saved if the calls of a group took no time; ranks still wait for each other.
type Ideal struct {
	Group       string  `json:"group"`
	IterationUs float64 `json:"iterationUs"`
	WonUs       float64 `json:"wonUs"`
}

// everyGroup is the name that means all groups.
const everyGroup = "all"

// Free runs the job once per name with the calls of that group taking no time, and adds the time saved. A
// name is that of a group, or a kind: TP means all TP groups; "all" means every group. It returns a
// *transform.Error for a name that the job does not have.
func (r *Report) Free(ctx context.Context, p *workload.Program, m *job.Machine, o Options,
	names []string) error {
	for _, name := range names {
		free := make([]bool, len(p.Comms))
		var have []string
		for i := range p.Comms {
			c := &p.Comms[i]
			free[i] = name == everyGroup || c.Name == name || c.Kind != workload.NoKind &&
				strings.EqualFold(c.Kind.String(), name)
			if len(have) < maxRows {
				have = append(have, c.Name)
			}
		}
		if name == everyGroup && len(p.Comms) == 0 { // nothing is won without calls
			r.Ideal = append(r.Ideal, Ideal{Group: name, IterationUs: r.IterationUs})
			continue
		}
		if !slices.Contains(free, true) {
			hint := "it has none"
			if len(have) > 0 {
				hint = "its groups are " + strings.Join(have, ", ") + "; all means every one"
			}
			return &transform.Error{Problem: "the job has no group " + name, Hint: hint}
		}
		res, err := m.Run(ctx, p, job.Options{Fidelity: o.Fidelity, Free: free})
		if err != nil {
			return err
		}
		x := Ideal{Group: name}
		_, sums := iterations(res, o)
		for _, s := range sums {
			x.IterationUs += s / float64(len(sums))
		}
		x.WonUs = r.IterationUs - x.IterationUs
		r.Ideal = append(r.Ideal, x)
	}
	return nil
}
