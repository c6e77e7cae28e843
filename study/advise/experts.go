package advise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/scenario"
)

// Layout is how a dispatch or a combine may be done, and what bounds it so.
type Layout struct {
	Kernel string  `json:"kernel"`
	SMs    int     `json:"sms,omitempty"`
	Us     float64 `json:"us"`
	// Gain is the time of NCCL's sends and receives over this one.
	Gain   float64 `json:"gain"`
	Bound  string  `json:"bound"`
	Margin float64 `json:"margin"`
	// Refused says why the kernel cannot be had on this machine, or is not simulated on it.
	Refused string `json:"refused,omitempty"`
}

// Layouts are those of an operation, the fastest first, refused ones last.
type Layouts struct {
	Op   string   `json:"kind"`
	Rows []Layout `json:"layouts"`
}

// blocks are the numbers of SMs that are tried, of kernels that take so many.
var blocks = []int{4, 8, 12, 16, 20, 24, 32, 48, 64}

// Experts compares the kernels of a dispatch or a combine on a machine: by how many SMs, as many as gain, and
// by NCCL's sends and receives. Errors: those of scenario.ServeOn but for kernels that the machine lacks.
func Experts(ctx context.Context, q Request) (*Layouts, error) {
	site, err := scenario.Load(&q.Spec, q.Options)
	if err != nil {
		return nil, err
	}
	out := &Layouts{Op: q.Spec.Workload.Op}
	for _, kernel := range append([]string{scenario.NCCLKernel}, peer.ExpertKernels()...) {
		q.Spec.Workload.Kernel = kernel
		row, err := q.layout(ctx, site)
		var none *plan.UnsupportedError
		var unknown *exec.NotImplementedError
		switch {
		case errors.As(err, &none), errors.As(err, &unknown):
			row = Layout{Kernel: kernel, Refused: err.Error()}
		case err != nil:
			return nil, err
		}
		out.Rows = append(out.Rows, row)
	}
	if nccl := out.Rows[0].Us; nccl > 0 {
		for i := range out.Rows {
			out.Rows[i].Gain = nccl / max(out.Rows[i].Us, 1e-9)
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b Layout) int {
		return cmp.Or(cmp.Compare(min(len(a.Refused), 1), min(len(b.Refused), 1)), cmp.Compare(a.Us, b.Us))
	})
	return out, nil
}

// layout is that of the kernel of q with the fewest SMs that take no more than 3 % longer than the best
// number.
func (q *Request) layout(ctx context.Context, site *scenario.Site) (Layout, error) {
	kernel := q.Spec.Workload.Kernel
	var tried []*scenario.Served
	try := func(sms int) error {
		q.Spec.Workload.Serving.SMs = sms
		s, err := scenario.ServeOn(ctx, site, q.Spec, q.Options)
		tried = append(tried, s)
		return err
	}
	counts := blocks
	switch kernel {
	case scenario.NCCLKernel, peer.DeepEPLowLatency, peer.PPLX, peer.OneSided:
		counts = []int{0}
	}
	for _, n := range counts {
		if err := try(n); err != nil {
			return Layout{}, err
		}
	}
	best := slices.MinFunc(tried, func(a, b *scenario.Served) int { return cmp.Compare(a.Us, b.Us) }).Us
	i := slices.IndexFunc(tried, func(s *scenario.Served) bool { return s.Us <= worthwhile*best })
	s := tried[i]
	row := Layout{Kernel: kernel, SMs: s.Blocks, Us: s.Us, Margin: s.Margin}
	switch {
	case s.Use >= 0.8:
		row.Bound = fmt.Sprintf("link %s, %.0f %% of the time", s.Limit, 100*s.Use)
	case i > 0 && i == len(tried)-1:
		row.Bound = "SMs"
	default:
		row.Bound = fmt.Sprintf("fixed costs and SMs; link %s %.0f %% of the time", s.Limit, 100*s.Use)
	}
	return row, nil
}

// Text is a table of the layouts, and what cannot be had.
func (l *Layouts) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "kernel\tSMs\tus\tof NCCL's\tbound by")
	for _, r := range l.Rows {
		if r.Refused == "" {
			fmt.Fprintf(w, "%s\t%d\t%.2f\tx %.2f\t%s\n", r.Kernel, r.SMs, r.Us, r.Gain, r.Bound)
		}
	}
	_ = w.Flush() // a strings.Builder takes all
	for _, r := range l.Rows {
		if r.Refused != "" {
			fmt.Fprintln(&b, r.Refused)
		}
	}
	b.WriteString("note: nccl is an alltoall of unequal parts, without the sorting of tokens before and " +
		"after it\n")
	return b.String()
}
