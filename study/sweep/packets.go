package sweep

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/packetrun"
	"github.com/simccl/simccl/units"
)

// PacketRow is the result of a point of simccl network run.
type PacketRow struct {
	Func   string  `json:"func"`    // "network"
	TimeUs float64 `json:"time_us"` // from the first start to the last acknowledgement
	Flows  int     `json:"flows"`
	Ended  int     `json:"flows_ended"`
	// FCT and Slowdown are of the flows that ended, by nearest rank; 0 where none did.
	FCTP50      float64     `json:"fct_p50_us"`
	FCTP99      float64     `json:"fct_p99_us"`
	SlowdownP50 float64     `json:"slowdown_p50"`
	SlowdownP99 float64     `json:"slowdown_p99"`
	Mean        float64     `json:"slowdown_mean"`
	PeakQueue   units.Bytes `json:"peak_queue_bytes"`
	Pauses      int64       `json:"pauses"`
	Marks       int64       `json:"marks"`
	Drops       int64       `json:"drops"` // by switches or lost on links
	Again       int64       `json:"retransmitted"`
	LineUse     float64     `json:"link_use"` // of the busiest line; 0 where not all flows ended
}

var packetColumns = []Col{{"func", "text", ""}, {"time_us", "float", "us"}, {"flows", "int", ""},
	{"flows_ended", "int", ""}, {"fct_p50_us", "float", "us"}, {"fct_p99_us", "float", "us"},
	{"slowdown_p50", "float", ""}, {"slowdown_p99", "float", ""}, {"slowdown_mean", "float", ""},
	{"peak_queue_bytes", "int", "B"}, {"pauses", "int", ""}, {"marks", "int", ""}, {"drops", "int", ""},
	{"retransmitted", "int", ""}, {"link_use", "float", ""}}

// columns describe the rows of the sweep's points.
func (s *Spec) columns() []Col {
	if s.Network != nil {
		return packetColumns
	}
	return columns
}

// reads has a request read its files from those of the run; seen gets each.
func reads(r *packetrun.Request, from *scenario.Options, seen func(name string, data []byte)) {
	r.Read = func(name string) ([]byte, error) {
		data, err := from.ReadAs(name, packetrun.MaxFile, r.Kinds()...)
		if err == nil {
			seen(name, data)
		}
		return data, err
	}
	r.Warn = func(string, ...any) {}
}

// packets simulates a point.
func (r *Run) packets(ctx context.Context, q *packetrun.Request) ([]PacketRow, error) {
	reads(q, &r.Options, func(string, []byte) {})
	q.Poll = ctx.Err
	x, err := q.Run()
	if err != nil {
		return nil, packetrun.Members(err)
	}
	row := PacketRow{Func: "network", TimeUs: float64(x.MakespanNs) / 1e3, Flows: len(x.Flows),
		PeakQueue: units.Bytes(x.PeakQueueBytes), Pauses: x.Pauses, Marks: x.Marks, Drops: x.Drops + x.Lost,
		Again: x.Retransmitted}
	var fct []int64
	for i := range x.Flows {
		if ns := x.Flows[i].FctNs; ns != nil {
			fct = append(fct, *ns)
		}
	}
	if slices.Sort(fct); len(fct) > 0 {
		row.Ended = len(fct)
		row.FCTP50, row.FCTP99 = float64(fct[(len(fct)+1)/2-1])/1e3, float64(fct[(99*len(fct)+99)/100-1])/1e3
	}
	if s := x.Slowdown; s != nil {
		row.SlowdownP50, row.SlowdownP99, row.Mean = s.Median, s.P99, s.Mean
	}
	if x.Line != nil {
		row.LineUse = x.Line.Use
	}
	return []PacketRow{row}, nil
}

// packets hashes a point of network run with the contents of the files that it reads, which it checks by
// that.
func (k *keyer) packets(r *packetrun.Request) (Key, error) {
	q := r.Clone()
	var names []string
	reads(q, &k.opt, func(name string, data []byte) {
		k.mu.Lock()
		defer k.mu.Unlock()
		names = append(names, k.put(name, data))
	})
	q.Dry = true
	if _, err := q.Run(); err != nil {
		return "", packetrun.Members(err)
	}
	for _, name := range []*string{&q.NS3, &q.Fabric, &q.Matrix, &q.Topo} {
		if *name != "" {
			*name = "file"
		}
	}
	text, err := json.Marshal([]any{q, names})
	return k.of(text), err
}

// misplaced is an error of a point of network run at the setting that its text begins with, or else at the
// options that all points have.
func (s *Spec) misplaced(p *Point, err error) error {
	in, text := specParser{file: s.File}, strings.TrimPrefix(err.Error(), "network run: ")
	for _, set := range p.Settings {
		if strings.HasPrefix(text, set.Name) {
			return in.fail(set.at, "write what simccl network run takes", "%s", text)
		}
	}
	for _, m := range s.members {
		if strings.HasPrefix(text, m.path) {
			return in.fail(m.at, "write what simccl network run takes", "network: %s", text)
		}
	}
	return in.fail(nil, "write what simccl network run takes", "network: %s, at point %s", text, p.labels())
}
