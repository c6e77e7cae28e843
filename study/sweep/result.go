package sweep

import (
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/units"
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
	Bill
}

// columns describe the members of a Row.
var columns = append([]Col{
	{"func", "text", ""}, {"type", "text", ""}, {"redop", "text", ""}, {"bytes", "int", "B"}, {"ranks", "int", ""}, {"nodes", "int", ""},
	{"time_us", "float", "us"}, {"algbw", "float", "GB/s"}, {"busbw", "float", "GB/s"}, {"inplace_us", "float", "us"}, {"algo", "text", ""}, {"proto", "text", ""},
	{"nchannels", "int", ""}, {"model_us", "float", "us"}, {"limiting_link", "text", ""}, {"limiting_use", "float", ""}, {"method", "text", ""}, {"margin", "float", ""}, {"regret", "float", ""},
	{"class", "text", ""}, {"uncertainty", "float", ""},
}, billColumns...)

// summary is what a dataset keeps of a result.
func summary(res *scenario.Result, b Bill) []Row {
	out := make([]Row, len(res.Rows))
	for i := range res.Rows {
		r := &res.Rows[i]
		f := &r.Facts
		out[i] = Row{Func: r.Func, Type: r.Type, RedOp: r.RedOp, Bytes: r.Bytes, Ranks: res.Machine.Ranks, Nodes: res.Machine.Nodes,
			TimeUs: us(r.Out.Time), AlgBW: r.Out.AlgBW, BusBW: r.Out.BusBW, InUs: us(r.In.Time), Algo: f.Algo, Proto: f.Proto, Channels: f.Channels,
			ModelUs: f.ModelUs, Limit: f.Limit, Use: f.Use, Method: f.Simulated, Margin: f.Margin, Regret: f.Regret, Class: res.Machine.Class, Doubt: res.Machine.Uncertainty, Bill: b}
	}
	return out
}

func us(t units.Time) float64 { return float64(t) / 1e6 }
