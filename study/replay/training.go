package replay

import (
	"cmp"
	"fmt"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/compute"
)

// Training is the training throughput of a generated job.
type Training struct {
	Model string `json:"model"`
	// TokensPerSecond and FLOPs (operations per second) are per GPU; FLOPs counts the model's operations,
	// without recomputation.
	TokensPerSecond float64 `json:"tokensPerSecondPerGpu"`
	FLOPs           float64 `json:"modelFlopsPerGpu"`
	// MFU is FLOPs as a fraction of the GPU's dense peak in the precision of most products.
	MFU       float64 `json:"mfu"`
	Precision string  `json:"precision"`
	// PeakFLOPs is that peak, in operations per second.
	PeakFLOPs float64 `json:"peakFlops"`
	// TTFTUs is the time of a prefill step, to the first token of its requests; TPOTUs that of a decoding
	// step, one more token for each. Both exclude queueing, host work between steps, and interleaved steps of
	// the other phase. 0 for a step of the other phase.
	TTFTUs float64 `json:"ttftUs,omitempty"`
	TPOTUs float64 `json:"tpotUs,omitempty"`
}

// String formats the throughput for the text report.
func (t *Training) String() string {
	step := ""
	if t.TTFTUs > 0 {
		step = fmt.Sprintf("\n  first token after %.3f ms (TTFT of a step: no queue, no host)", t.TTFTUs/1e3)
	} else if t.TPOTUs > 0 {
		step = fmt.Sprintf("\n  a token of each request every %.3f ms (TPOT of this step, without the host)",
			t.TPOTUs/1e3)
	}
	return fmt.Sprintf("%s: %.0f tokens/s a GPU, %.0f TFLOP/s of the model, %.1f %% of %.0f in %s (MFU)%s",
		t.Model, t.TokensPerSecond, t.FLOPs/1e12, 100*t.MFU, t.PeakFLOPs/1e12, t.Precision, step)
}

// trained returns the throughput of an iteration of us microseconds on a GPU; nil if the job does not name
// its model.
func trained(p *workload.Program, gpu string, us float64) *Training {
	m := &p.Model
	if m.Tokens == 0 || m.FLOPs == 0 || us <= 0 {
		return nil
	}
	perSecond := float64(m.Tokens) / us * 1e6 / float64(p.Ranks())
	t := &Training{Model: m.Name, TokensPerSecond: perSecond, FLOPs: perSecond * float64(m.FLOPs)}
	t.Model = cmp.Or(t.Model, "model")
	switch m.Phase {
	case "prefill":
		t.TTFTUs = us
	case "decode":
		t.TPOTUs = us
	}
	precision := mostly(p)
	if peak, at := compute.Peak(gpu, precision); peak > 0 {
		t.PeakFLOPs, t.Precision, t.MFU = peak, at.String(), t.FLOPs/peak
	}
	return t
}

// mostly returns the precision of most operations of matrix products.
func mostly(p *workload.Program) (most workload.Precision) {
	sums := map[workload.Precision]float64{}
	for i := range p.Lists {
		for k := range p.Lists[i].Steps {
			s := &p.Lists[i].Steps[k]
			if s.Kind != workload.Compute || s.Work == 0 || p.Works[s.Work-1].Shape.Op !=
				workload.ProductShape {
				continue
			}
			w := &p.Works[s.Work-1]
			x := w.Shape.Precision
			if sums[x] += float64(w.FLOPs); sums[x] > sums[most] {
				most = x
			}
		}
	}
	return most
}

// firstEnd returns the time at which the last rank ends the first iteration, in microseconds.
func firstEnd(res *job.Result) (last float64) {
	p := res.Program
	second := make([]int32, len(p.Lists))
	seen := make([]int, len(p.Lists))
	for _, m := range p.Marks { // those of a list are in order
		if seen[m.List]++; seen[m.List] == 2 {
			second[m.List] = m.Step
		}
	}
	for rank, list := range p.Of {
		if seen[list] > 1 {
			last = max(last, us(moment(p, rank, int(second[list]), true, func(rank, step int) units.Time {
				return res.Spans[rank][step].End
			})))
		}
	}
	return last
}

// extend extrapolates an iteration of all microbatches from one of few and one of some more microbatches:
// each further microbatch takes the difference per microbatch. Other figures of an iteration grow in
// proportion.
//
// Iterations are counted to the end of their slowest rank: stages that end earlier begin the next iteration
// no sooner, so the first iteration ends with its last rank.
func (r *Report) extend(res *job.Result) {
	m := res.Program.Model.Micro
	r.period = r.IterationUs
	if len(r.Steps) == 1 {
		r.period = max(r.IterationUs, firstEnd(res))
	}
	if m == [3]int64{} || len(r.Steps) != 2 || r.IterationUs <= 0 {
		return
	}
	first, second := firstEnd(res), r.Steps[1].Us
	whole := second + (second-first)*float64(m[2]-m[1])/float64(m[1]-m[0])
	factor := whole / r.IterationUs
	r.period = whole
	r.IterationUs, r.Steps = whole, []Step{{Name: r.Steps[1].Name, Us: whole}}
	for _, x := range []*float64{&r.ComputeUs, &r.ExposedUs, &r.HostUs, &r.CommUs, &r.LateUs, &r.BubbleUs,
		&r.IdleUs, &r.BoundUs, &r.Bounds.ComputeUs, &r.Bounds.LinkUs, &r.Bounds.PathUs} {
		*x *= factor
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		g.Calls, g.BytesPerRank, g.BusyUs, g.ExposedUs = g.Calls*factor, g.BytesPerRank*factor,
			g.BusyUs*factor, g.ExposedUs*factor
	}
	for i := range r.ByRank {
		b := &r.ByRank[i]
		b.ComputeUs, b.MovingUs, b.BubbleUs, b.HostUs, b.IdleUs = b.ComputeUs*factor, b.MovingUs*factor,
			b.BubbleUs*factor, b.HostUs*factor, b.IdleUs*factor
	}
	for i := range r.Path {
		r.Path[i].Us *= factor
	}
	r.Notes = append(r.Notes, fmt.Sprintf("an iteration of %d microbatches is made of iterations of %d and "+
		"%d: each further one takes what lies between them", m[2], m[0], m[1]))
}
