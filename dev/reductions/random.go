package reductions

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// machines are those that random requests name, with the ranks of a node.
var machines = []struct {
	name string
	gpus int
}{
	{"dgx-h100", 8}, {"dgx-h100", 8}, {"dgx-a100", 8}, {"dgx-b200", 8}, {"gb200-nvl72-2tray", 8},
	{"hgx-h100-4", 4}, {"aws-p4d.24xlarge", 8}, {"dgx-2", 16}, {"hgx-h800-8", 8}, {"pcie-l40s-8", 8},
}

// Random draws a request: a machine, nodes, an operation, a size and some settings.
func Random(rng *rand.Rand) Request {
	m := machines[rng.IntN(len(machines))]
	most := 1 + rng.IntN(5)
	nodes := min(300, 1+rng.IntN(4*most*most*most)) // most requests are small
	op := "all_reduce"
	if rng.IntN(2) == 0 {
		op = operations[1+rng.IntN(len(operations)-1)]
	}
	size := int64(math.Exp2(14 + 20*rng.Float64()))
	switch op {
	case "alltoall", "gather", "scatter":
		nodes = min(nodes, 40)
	}
	if rng.IntN(2) == 0 {
		size = 1 << (14 + rng.IntN(21))
	}
	words := []string{op, "--topo", m.name, "--nodes", fmt.Sprint(nodes), "--sizes", fmt.Sprint(size)}
	maybe := func(one int, options ...string) {
		if rng.IntN(one) == 0 {
			words = append(words, strings.Fields(options[rng.IntN(len(options))])...)
		}
	}
	if op == "all_reduce" {
		maybe(3, "--env NCCL_ALGO=Ring", "--env NCCL_ALGO=Tree", "--env NCCL_ALGO=NVLSTree")
	}
	const simple = "--env NCCL_PROTO=Simple"
	maybe(4, "--env NCCL_PROTO=LL", "--env NCCL_PROTO=LL128", simple, simple)
	maybe(8, "--env NCCL_IB_DISABLE=1")
	maybe(8, "--env NCCL_PXN_DISABLE=1", "--env NCCL_CROSS_NIC=1", "--env NCCL_MAX_NCHANNELS=12")
	maybe(6, "-m 2", "-m 3", "-m 4")
	maybe(8, "-R 1", "-R 2")
	maybe(6, "--jitter off")
	maybe(3, "--launch graph")
	maybe(8, "--multicast off")
	if nodes > 1 {
		maybe(6, fmt.Sprintf("--fault rank=%d:slow=1.5", rng.IntN(nodes*m.gpus)),
			fmt.Sprintf("--fault nic=node%d/0:slow=2", rng.IntN(nodes)))
		maybe(10, "--nccl-version 2.26.2", "--nccl-version 2.23.4")
	}
	return Request(strings.Join(words, " "))
}

// Exactly is a request of which nothing is left out. Of an option given twice the last one counts.
func (r Request) Exactly() Request { return r + " --fold exact --skip off" }

// Pair is an approximate time beside the exact one, in microseconds.
type Pair struct {
	N       int64   `json:"n"` // in the order in which requests are drawn
	Request Request `json:"request"`
	Method  string  `json:"method,omitempty"`
	Near    float64 `json:"near_us,omitempty"`
	Exact   float64 `json:"exact_us,omitempty"`
	Margin  float64 `json:"margin,omitempty"`
	Note    string  `json:"note,omitempty"`
	Skipped string  `json:"skipped,omitempty"` // why the two were not compared
}

// Off is by how much of the exact time the approximate one is longer.
func (p *Pair) Off() float64 { return p.Near/p.Exact - 1 }

// Broken reports whether an approximate time is off by more than it says.
func (p *Pair) Broken() bool { return p.Skipped == "" && math.Abs(p.Off()) > p.Margin }

// Within bounds what the exact run of a Pair may take, by its forecast.
type Within = exec.Cost

// Compare simulates a request as its policy decides, and exactly. What the policy finds exactly,
// and what costs more than within, is not run.
func (s *Sites) Compare(ctx context.Context, r Request, within Within) (Pair, error) {
	p := Pair{Request: r}
	near, err := s.method(ctx, r)
	switch {
	case err != nil:
		p.Skipped = err.Error()
	case near.Margin == 0:
		p.Skipped = "exact"
	}
	if p.Skipped != "" {
		return p, nil
	}
	p.Method = near.Method.String()
	if near.Note != "" {
		p.Note = near.Note
	}
	exact, err := s.method(ctx, r.Exactly())
	if c := exact.Reduction.Cost; err == nil && (c.Time > within.Time || c.Memory > within.Memory) {
		err = errors.New("the exact run takes too long")
	}
	if err != nil {
		p.Skipped = err.Error()
		return p, nil
	}
	if p.Near, p.Margin, err = s.time(ctx, r); err != nil {
		return p, err
	}
	p.Exact, _, err = s.time(ctx, r.Exactly())
	return p, err
}

// method is how a request is simulated.
func (s *Sites) method(ctx context.Context, r Request) (exec.Account, error) {
	run, err := s.Running(r)
	if err != nil {
		return exec.Account{}, err
	}
	return run.Method(ctx, run.Lines()[0].Operation)
}

// time simulates a request, and says by how much that may be off.
func (s *Sites) time(ctx context.Context, r Request) (us, margin float64, err error) {
	run, err := s.Running(r)
	if err != nil {
		return 0, 0, err
	}
	o, err := run.Simulate(ctx, run.Lines()[0].Operation, trace.Discard, nccl.Options{}, nil)
	return float64(o.Result.Elapsed) / float64(units.Microsecond), o.Result.Account.Margin, err
}
