package sweep

import (
	"context"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
)

// Row is one size of a point's result, as datasets have it.
type Row struct {
	Func     string      `json:"func"`
	Type     string      `json:"type"`
	RedOp    string      `json:"redop,omitempty"`
	Bytes    units.Bytes `json:"bytes"`
	Ranks    int         `json:"ranks"`
	Nodes    int         `json:"nodes"`
	TimeUs   float64     `json:"time_us"`
	AlgBW    float64     `json:"algbw"`
	BusBW    float64     `json:"busbw"`
	InUs     float64     `json:"inplace_us"`
	Algo     string      `json:"algo,omitempty"`
	Proto    string      `json:"proto,omitempty"`
	Channels int         `json:"nchannels,omitempty"`
	ModelUs  float64     `json:"model_us"`
	Limit    string      `json:"limiting_link,omitempty"`
	Use      float64     `json:"limiting_use"`
	Method   string      `json:"method"`
	Margin   float64     `json:"margin,omitempty"`
	Regret   *float64    `json:"regret,omitempty"`
	Class    string      `json:"class"`
	Doubt    float64     `json:"uncertainty"`
	// ComputeUs and ExposedUs are those of a job per iteration, means over its ranks: compute time, and
	// exposed communication; 0 for an operation.
	ComputeUs float64 `json:"compute_us"`
	ExposedUs float64 `json:"exposed_us"`
	// TokensPerSecond is per GPU, MFU a fraction, MemoryBytes the use of the fullest GPU; 0 if unknown.
	TokensPerSecond float64     `json:"tokens_s_gpu"`
	MFU             float64     `json:"mfu"`
	MemoryBytes     units.Bytes `json:"memory_bytes"`
	Bill
}

// columns describes the members of a Row.
var columns = append([]Col{
	{"func", "text", ""}, {"type", "text", ""}, {"redop", "text", ""}, {"bytes", "int", "B"},
	{"ranks", "int", ""}, {"nodes", "int", ""},
	{"time_us", "float", "us"}, {"algbw", "float", "GB/s"}, {"busbw", "float", "GB/s"},
	{"inplace_us", "float", "us"}, {"algo", "text", ""}, {"proto", "text", ""},
	{"nchannels", "int", ""}, {"model_us", "float", "us"}, {"limiting_link", "text", ""},
	{"limiting_use", "float", ""}, {"method", "text", ""}, {"margin", "float", ""}, {"regret", "float", ""},
	{"class", "text", ""}, {"uncertainty", "float", ""}, {"compute_us", "float", "us"},
	{"exposed_us", "float", "us"}, {"tokens_s_gpu", "float", "1/s"}, {"mfu", "float", ""},
	{"memory_bytes", "int", "B"},
}, billColumns...)

// summary returns the rows of a result that a dataset keeps.
func summary(res *scenario.Result, b Bill) []Row {
	out := make([]Row, len(res.Rows))
	for i := range res.Rows {
		r := &res.Rows[i]
		f := &r.Facts
		out[i] = Row{Func: r.Func, Type: r.Type, RedOp: r.RedOp, Bytes: r.Bytes, Ranks: res.Machine.Ranks,
			Nodes:  res.Machine.Nodes,
			TimeUs: us(r.Out.Time), AlgBW: r.Out.AlgBW, BusBW: r.Out.BusBW, InUs: us(r.In.Time), Algo: f.Algo,
			Proto: f.Proto, Channels: f.Channels,
			ModelUs: f.ModelUs, Limit: f.Limit, Use: f.Use, Method: f.Simulated, Margin: f.Margin,
			Regret: f.Regret, Class: res.Machine.Class, Doubt: res.Machine.Uncertainty, Bill: b}
	}
	return out
}

// jobFunc is the operation's name in rows of jobs.
const jobFunc = "job"

// runJob runs a job on a loaded machine. The time of its row is that of an iteration, as replay defines it.
func runJob(ctx context.Context, site *scenario.Site, s *scenario.Spec, opt scenario.Options, b Bill) ([]Row,
	error) {
	var p *workload.Program
	var err error
	if s.Workload.Job != "" {
		p, err = scenario.ReadJob(s, opt)
	} else {
		p, err = site.Made(s)
	}
	if err != nil {
		return nil, err
	}
	j, err := scenario.JobOn(site, *s, p)
	if err != nil {
		return nil, err
	}
	r, _, err := replay.Run(ctx, &load.Job{Program: j.Program}, j.Program, j.Machine,
		replay.Options{Fidelity: j.Options.Fidelity, Host: 1, Quick: true})
	if err != nil {
		return nil, err
	}
	r.On(site, j.Scaled, j.Note)
	row := Row{Func: jobFunc, Ranks: p.Ranks(), Nodes: site.Cluster.NHosts(), TimeUs: r.IterationUs,
		ComputeUs: r.ComputeUs, ExposedUs: r.ExposedUs,
		Method: r.Fidelity, Class: site.Class().Name, Doubt: site.Uncertainty(), Bill: b}
	if r.Training != nil {
		row.TokensPerSecond, row.MFU = r.TokensPerSecond, r.MFU
		// until the slowest rank ends: the next iteration cannot begin earlier
		row.TimeUs = float64(p.Model.Tokens) / (r.TokensPerSecond * float64(p.Ranks())) * 1e6
	}
	if r.Memory != nil {
		row.MemoryBytes = units.Bytes(r.Memory.Total)
	}
	return []Row{row}, nil
}

func us(t units.Time) float64 { return float64(t) / 1e6 }
