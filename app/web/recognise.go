package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/anyhost"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/simccl/simccl/workload/load"
)

// Recognised is a file's kind, and what the page does with it.
type Recognised struct {
	// Kind: topology, graphs, scenario, fabric, class, log, measured, workload or trace.
	Kind string `json:"kind"`
	Name string `json:"name"`
	Text string `json:"text"` // one line about it
	// Topo is the topology that the page uses then, Spec the scenario.
	Topo string         `json:"topo,omitempty"`
	Spec *scenario.Spec `json:"spec,omitempty"`
	// Report is that of a log that was compared.
	Report   *logcheck.Report `json:"report,omitempty"`
	Detail   string           `json:"detail,omitempty"`
	Measured *page.Measured   `json:"measured,omitempty"`
	Warnings []string         `json:"warnings"`
}

// reader reads a content of a kind.
type reader func(s *Service, name string, data []byte, q *Query) (*Recognised, error)

// readerOf is who reads a kind of file; nil for none.
func readerOf(k inputs.Kind) reader {
	switch k {
	case inputs.Topology, inputs.TopologyHosts, inputs.Template:
		return topologyFile
	case inputs.Lstopo, inputs.Matrix, inputs.MachineSpec, inputs.SystemPrint:
		return otherMachine
	case inputs.Graphs:
		return func(*Service, string, []byte, *Query) (*Recognised, error) {
			return &Recognised{Kind: "graphs", Text: "graphs of NCCL_GRAPH_FILE"}, nil
		}
	case inputs.Scenario:
		return scenarioFile
	case inputs.Fabric:
		return fabricFile
	case inputs.MachineClass:
		return classFile
	case inputs.TestTable, inputs.TestJSON:
		return func(_ *Service, name string, data []byte, q *Query) (*Recognised, error) {
			return measured(name, data, q)
		}
	case inputs.NCCLLog:
		return logFile
	case inputs.ChromeTrace:
		return func(*Service, string, []byte, *Query) (*Recognised, error) {
			return &Recognised{Kind: "trace", Text: "a Chrome trace"}, nil
		}
	}
	if slices.Contains(inputs.Jobs(), k) {
		return func(*Service, string, []byte, *Query) (*Recognised, error) {
			return &Recognised{Kind: "workload", Text: "workload: " + k.String()}, nil
		}
	}
	return nil
}

func (s *Service) recognise(_ context.Context, q *Query, _ Emit) (any, error) {
	data, err := s.read(q.Name)
	if err != nil {
		return nil, err
	}
	v := inputs.Of(data)
	if v.Is(inputs.MSCCL, inputs.MSCCLPlus) {
		return nil,
			fmt.Errorf("%s: %s; the page runs NCCL's schedules, simccl schedule check and run --schedule "+
				"take this one", q.Name, v.Kind().What())
	}
	for _, f := range v.Found {
		read := readerOf(f.Kind)
		if read == nil {
			continue
		}
		text := v.Text
		if f.Kind == inputs.NCCLLog || len(v.Wrapped) == 0 {
			text = data
		}
		out, err := read(s, q.Name, text, q)
		if err != nil {
			return nil, err
		}
		out.Name = q.Name
		out.Warnings = append([]string{}, out.Warnings...)
		return out, nil
	}
	const kinds = "a topology (XML, lstopo's XML, nvidia-smi topo -m, a description), scenario, fabric, " +
		"machine class, NCCL log, table of nccl-tests, workload or trace can be dropped here"
	if len(v.Found) > 0 {
		return nil, fmt.Errorf("%s: %s; %s", q.Name, v.Kind().What(), kinds)
	}
	return nil, fmt.Errorf("%s: not recognised: %s; %s", q.Name, v.Note, kinds)
}

func topologyFile(_ *Service, name string, data []byte, _ *Query) (*Recognised, error) {
	spec, err := topoxml.Parse(data, name)
	if err != nil {
		return nil, err
	}
	out := &Recognised{Kind: "topology", Topo: name}
	for _, w := range spec.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}
	n := len(spec.Root.All("gpu"))
	out.Text = fmt.Sprintf("topology: GPUs %d, NICs %d", n, len(spec.Root.All("net")))
	if n == 0 {
		return nil, fmt.Errorf("%s: %w", name, decl.ErrNoGPU)
	}
	return out, nil
}

// otherMachine takes what describes a machine in another form; the topology that it gives is
// put beside it.
func otherMachine(s *Service, name string, data []byte, _ *Query) (*Recognised, error) {
	h, err := anyhost.Read(data, name, anyhost.Given{})
	if err != nil {
		return nil, err
	}
	made := strings.TrimSuffix(name, path.Ext(name)) + "-made.xml"
	if err := s.Put(made, h.XML()); err != nil {
		return nil, err
	}
	return &Recognised{Kind: "topology", Topo: made, Text: fmt.Sprintf("%s: GPUs %d", h.Kind,
		len(h.Root.All("gpu"))), Warnings: h.Notes}, nil
}

func scenarioFile(_ *Service, name string, data []byte, _ *Query) (*Recognised, error) {
	spec, err := scenario.Parse(data, name)
	if err != nil {
		return nil, err
	}
	return &Recognised{Kind: "scenario", Text: strings.TrimSpace("scenario " + spec.Name), Spec: &spec}, nil
}

func fabricFile(_ *Service, name string, data []byte, _ *Query) (*Recognised, error) {
	if _, err := fabric.ParseNetwork(data, name); err != nil {
		return nil, err
	}
	return &Recognised{Kind: "fabric", Text: "the network between the nodes"}, nil
}

func classFile(_ *Service, name string, data []byte, _ *Query) (*Recognised, error) {
	if _, err := gpu.Parse(data, name); err != nil {
		return nil, err
	}
	return &Recognised{Kind: "class", Text: "machine class: speeds of GPUs, links and NICs"}, nil
}

func measured(name string, data []byte, q *Query) (*Recognised, error) {
	list, err := page.ReadMeasured(data, name, page.Wanted{Program: q.Spec.Workload.Op + "_perf"})
	if err != nil {
		return nil, err
	}
	m := &list[0]
	text := fmt.Sprintf("measured: %d sizes", len(m.Points))
	if len(list) > 1 {
		text += fmt.Sprintf(", of the first of %d tables", len(list))
	}
	for _, note := range m.Notes {
		text += "; " + note
	}
	return &Recognised{Kind: "measured", Text: text, Measured: m}, nil
}

func logFile(_ *Service, name string, data []byte, _ *Query) (*Recognised, error) {
	log, err := ncclog.Read(ncclog.File{Name: name, Data: data})
	if err != nil {
		return nil, err
	}
	rep, err := logcheck.Check(logcheck.Input{Log: log})
	if err != nil {
		return nil, err
	}
	return &Recognised{Kind: "log", Text: "log of NCCL " + rep.Logged, Report: rep, Detail: rep.Text()}, nil
}

// Job is the result of a job's run, for the page.
type Job struct {
	Report   *replay.Report `json:"report"`
	Timeline *Timeline      `json:"timeline"`
	Machine  string         `json:"machine"`
	Note     string         `json:"note"`
	Ranks    int            `json:"ranks"`
}

// job runs a workload on the machine of the Spec; without a topology on the built-in
// one of the recording's GPUs.
func (s *Service) job(ctx context.Context, q *Query, emit Emit) (any, error) {
	var list []load.File
	for _, name := range q.Names {
		data, err := s.read(name)
		if err != nil {
			return nil, err
		}
		list = append(list, load.File{Name: name, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}})
	}
	emit(Progress{0, "reading the job"})
	j, err := load.Load(list, load.Options{})
	if err != nil {
		return nil, err
	}
	o := replay.Options{Host: 1}
	p, err := replay.Change(j.Program, o)
	if err != nil {
		return nil, err
	}
	spec := q.Spec.Clone()
	spec.Workload = scenario.Workload{}
	out := &Job{Ranks: p.Ranks()}
	if len(spec.Machine.Nodes) == 0 {
		if out.Note, err = replay.Machine(&spec, &j.Meta, p.Ranks()); err != nil {
			return nil, err
		}
	}
	site, err := scenario.Load(&spec, s.options(ctx, nil))
	if err != nil {
		return nil, err
	}
	m, err := site.Session(&spec)
	if err != nil {
		return nil, err
	}
	emit(Progress{0.2, "simulating the job"})
	rep, res, err := replay.Run(ctx, j, p, m, o)
	if err != nil {
		return nil, err
	}
	out.Report, out.Machine = rep, site.Name
	out.Timeline = ofJob(q.Names[0], timeline.Of(res), func(place int) string {
		return fmt.Sprintf("rank %d", place)
	})
	return out, nil
}
