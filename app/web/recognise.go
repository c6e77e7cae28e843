package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/smi"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/workload/load"
)

// Recognised is what a file is, and what follows from it for the page.
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

// reader recognises one kind of file: nil where a file is of another kind.
type reader func(s *Service, ctx context.Context, name string, data []byte, q *Query) (*Recognised, error)

// readers are asked in this order; the first that knows a file's content answers.
var readers = []reader{xmlFile, jsonFile, matrixFile, logFile, tableFile, workloadFile}

func (s *Service) recognise(ctx context.Context, q *Query, _ Emit) (any, error) {
	data, err := s.read(q.Name)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		head, err := unzip(q.Name, data, load.HeadSize)
		if err != nil {
			return nil, err
		}
		if !isTrace(head) { // a trace is unpacked as it is read
			head, err = unzip(q.Name, data, maxFile)
		}
		if data = head; err != nil {
			return nil, err
		}
	}
	for _, read := range readers {
		out, err := read(s, ctx, q.Name, data, q)
		if err != nil {
			return nil, err
		}
		if out != nil {
			out.Name = q.Name
			out.Warnings = append([]string{}, out.Warnings...)
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s: not recognised; a topology (XML), scenario, fabric, machine class, NCCL log, table of nccl-tests, workload or trace can be dropped here", q.Name)
}

// unzip returns a gzip file unpacked; with a limit below maxFile its beginning.
func unzip(name string, data []byte, limit int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if limit == maxFile {
		return bounded.Read(z, name, limit)
	}
	head, err := io.ReadAll(io.LimitReader(z, limit))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return head, nil
}

// isTrace reports whether JSON begins as a Chrome trace does.
func isTrace(data []byte) bool {
	head := bytes.TrimLeft(data[:min(len(data), 4<<10)], " \t\r\n\xef\xbb\xbf")
	return bytes.HasPrefix(head, []byte("[")) && bytes.Contains(head, []byte(`"ph"`)) || bytes.HasPrefix(head, []byte("{")) && (bytes.Contains(head, []byte(`"traceEvents"`)) || bytes.Contains(head, []byte(`"schemaVersion"`)))
}

func xmlFile(_ *Service, _ context.Context, name string, data []byte, _ *Query) (*Recognised, error) {
	head := string(bytes.TrimLeft(data[:min(len(data), 4<<10)], " \t\r\n\xef\xbb\xbf"))
	switch {
	case !strings.HasPrefix(head, "<"):
		return nil, nil
	case strings.Contains(head, "<graphs"):
		return &Recognised{Kind: "graphs", Text: "graphs of NCCL_GRAPH_FILE"}, nil
	case strings.Contains(head, "<algo"):
		return nil, fmt.Errorf("%s: a schedule (MSCCL XML); the page runs NCCL's schedules, simccl schedule check and run --schedule take this one", name)
	}
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

func jsonFile(_ *Service, _ context.Context, name string, data []byte, q *Query) (*Recognised, error) {
	head := bytes.TrimLeft(data, " \t\r\n\xef\xbb\xbf")
	if isTrace(data) {
		if bytes.Contains(head[:min(len(head), load.HeadSize)], []byte(`"deviceProperties"`)) || bytes.Contains(head[:min(len(head), load.HeadSize)], []byte(`"schemaVersion"`)) {
			return nil, nil // of torch.profiler: a workload
		}
		return &Recognised{Kind: "trace", Text: "a Chrome trace"}, nil
	}
	if !bytes.HasPrefix(head, []byte("{")) {
		return nil, nil
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(data, &keys) != nil {
		return nil, nil
	}
	if keys["scenario"] != nil {
		spec, err := scenario.Parse(data, name)
		if err != nil {
			return nil, err
		}
		return &Recognised{Kind: "scenario", Text: strings.TrimSpace("scenario " + spec.Name), Spec: &spec}, nil
	}
	if keys["switches"] != nil || keys["cables"] != nil {
		if _, err := fabric.ParseNetwork(data, name); err != nil {
			return nil, err
		}
		return &Recognised{Kind: "fabric", Text: "the network between the nodes"}, nil
	}
	if string(keys["format"]) == `"simccl machine class"` || keys["parameters"] != nil {
		if _, err := gpu.Parse(data, name); err != nil {
			return nil, err
		}
		return &Recognised{Kind: "class", Text: "machine class: speeds of GPUs, links and NICs"}, nil
	}
	if keys["results"] != nil {
		return measured(name, data, q)
	}
	return nil, nil
}

// matrixFile takes the matrix of nvidia-smi topo -m; the topology that it gives is put
// beside it.
func matrixFile(s *Service, _ context.Context, name string, data []byte, _ *Query) (*Recognised, error) {
	if len(data) > 1<<20 || !smi.Is(string(data)) {
		return nil, nil
	}
	m, err := smi.Parse(string(data), name, smi.Kinds{})
	if err != nil {
		return nil, err
	}
	root, err := m.Generate()
	if err != nil {
		return nil, err
	}
	made := strings.TrimSuffix(name, path.Ext(name)) + "-smi.xml"
	if err := s.Put(made, topoxml.Write(root)); err != nil {
		return nil, err
	}
	return &Recognised{Kind: "topology", Topo: made, Text: fmt.Sprintf("matrix of nvidia-smi topo -m: GPUs %d", len(root.All("gpu")))}, nil
}

func tableFile(_ *Service, _ context.Context, name string, data []byte, q *Query) (*Recognised, error) {
	if !bytes.Contains(data[:min(len(data), 64<<10)], []byte("out-of-place")) {
		return nil, nil
	}
	return measured(name, data, q)
}

func measured(name string, data []byte, q *Query) (*Recognised, error) {
	m, err := page.ReadMeasured(data, name, q.Spec.Workload.Op+"_perf")
	if err != nil {
		return nil, err
	}
	return &Recognised{Kind: "measured", Text: fmt.Sprintf("measured: %d sizes", len(m.Points)), Measured: &m}, nil
}

func logFile(_ *Service, _ context.Context, name string, data []byte, _ *Query) (*Recognised, error) {
	if !bytes.Contains(data[:min(len(data), 1<<20)], []byte("NCCL INFO")) {
		return nil, nil
	}
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

func workloadFile(_ *Service, _ context.Context, name string, data []byte, _ *Query) (*Recognised, error) {
	format, err := load.Detect(data[:min(len(data), load.HeadSize)], name)
	var refused *load.RefusedError
	if errors.As(err, &refused) {
		return nil, err
	}
	if err != nil || format == load.Unknown {
		return nil, nil
	}
	return &Recognised{Kind: "workload", Text: "workload: " + format.String()}, nil
}

// Job is a job that ran.
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
		list = append(list, load.File{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }})
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
	out.Timeline = ofJob(q.Names[0], timeline.Of(res), func(place int) string { return fmt.Sprintf("rank %d", place) })
	return out, nil
}
