package replay

import (
	"fmt"

	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/compute"
)

// Training is how fast a job trains its model, by what is known of a made one.
type Training struct {
	Model string `json:"model"`
	// TokensPerSecond and FLOPs, operations a second, are of each GPU; FLOPs are the model's, without what
	// is computed again.
	TokensPerSecond float64 `json:"tokensPerSecondPerGpu"`
	FLOPs           float64 `json:"modelFlopsPerGpu"`
	// MFU is FLOPs as a fraction of the GPU's dense peak in the precision of most products.
	MFU       float64 `json:"mfu"`
	Precision string  `json:"precision"`
	// PeakFLOPs is that peak, in operations a second.
	PeakFLOPs float64 `json:"peakFlops"`
}

// String is a line for a person.
func (t *Training) String() string {
	return fmt.Sprintf("%s: %.0f tokens/s a GPU, %.0f TFLOP/s of the model, %.1f %% of %.0f in %s (MFU)",
		t.Model, t.TokensPerSecond, t.FLOPs/1e12, 100*t.MFU, t.PeakFLOPs/1e12, t.Precision)
}

// trained is what an iteration that takes so many microseconds on GPUs of a name comes to; nil where the job
// does not say what it trains.
func trained(p *workload.Program, gpu string, us float64) *Training {
	m := &p.Model
	if m.Tokens == 0 || m.FLOPs == 0 || us <= 0 {
		return nil
	}
	perSecond := float64(m.Tokens) / us * 1e6 / float64(p.Ranks())
	t := &Training{Model: m.Name, TokensPerSecond: perSecond, FLOPs: perSecond * float64(m.FLOPs)}
	if t.Model == "" {
		t.Model = "model"
	}
	precision := mostly(p)
	if peak, at := compute.Peak(gpu, precision); peak > 0 {
		t.PeakFLOPs, t.Precision, t.MFU = peak, at.String(), t.FLOPs/peak
	}
	return t
}

// mostly is the precision in which most operations of matrix products are.
func mostly(p *workload.Program) (most workload.Precision) {
	sums := map[workload.Precision]float64{}
	for i := range p.Lists {
		for k := range p.Lists[i].Steps {
			s := &p.Lists[i].Steps[k]
			if s.Kind != workload.Compute || s.Work == 0 || p.Works[s.Work-1].Shape.Op != workload.ProductShape {
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
