package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/decl"
	topoxml "github.com/simccl/simccl/topo/xml"
)

const traceName = "trace.json.gz"

// trace writes the Chrome trace of one size.
func (s *Service) trace(ctx context.Context, q *Query, emit Emit) (any, error) {
	spec := q.Spec.Clone()
	if q.Size != "" {
		spec.Workload.Sizes, spec.Workload.Range = []string{q.Size}, scenario.Range{}
	}
	spec.Outputs = scenario.Outputs{Trace: traceName}
	var file written
	opt := s.options(ctx, nil)
	opt.Create = func(string) (scenario.File, error) { return &file, nil }
	emit(Progress{0, "simulating"})
	if _, err := scenario.Run(ctx, spec, opt); err != nil {
		return nil, err
	}
	return &File{traceName, "application/gzip", file.Bytes()}, nil
}

// report writes the page of simccl report.
func (s *Service) report(ctx context.Context, q *Query, emit Emit) (any, error) {
	r, _, err := s.running(ctx, &q.Spec)
	if err != nil {
		return nil, err
	}
	var rows []scenario.Row
	total := float64(len(r.Lines()))
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, *row)
		emit(Progress{float64(len(rows)) / total / 2, "simulating"})
	}
	p, err := page.Of(ctx, r, rows, s.program, ctx.Err)
	if err != nil {
		return nil, err
	}
	p.Command = Command(&q.Spec)
	text, err := p.Bytes()
	if err != nil {
		return nil, err
	}
	return &File{"report.html", "text/html", text}, nil
}

// scenario is the Spec as a file.
func (s *Service) scenario(_ context.Context, q *Query, _ Emit) (any, error) {
	if err := q.Spec.Validate(); err != nil {
		return nil, err
	}
	return &File{"scenario.json", "application/json", q.Spec.JSON()}, nil
}

// topology is the XML of the first kind of node.
func (s *Service) topology(ctx context.Context, q *Query, _ Emit) (any, error) {
	spec, name, err := s.declared(ctx, &q.Spec)
	if err != nil {
		return nil, err
	}
	return &File{name, "application/xml", topoxml.Write(spec.Root)}, nil
}

func (s *Service) declared(ctx context.Context, spec *scenario.Spec) (*decl.Spec, string, error) {
	name := ""
	if len(spec.Machine.Nodes) > 0 {
		name = spec.Machine.Nodes[0].Topo
	}
	parsed, err := scenario.Topology(name, s.options(ctx, nil))
	name = cmp.Or(name, "dgx-h100")
	if err == nil && parsed.Root == nil {
		err = errors.New(name + ": no system element")
	}
	return parsed, strings.TrimSuffix(path.Base(name), ".xml") + ".xml", err
}

// Changed is a topology file that the page holds from now.
type Changed struct {
	Name string `json:"name"`
	NICs int    `json:"nics"`
}

// maxGbps bounds the speed of a NIC: twice the fastest that is announced.
const maxGbps = 3200

// nics makes a topology in which every NIC has another speed.
func (s *Service) nics(ctx context.Context, q *Query, _ Emit) (any, error) {
	if !(q.Gbps > 0 && q.Gbps <= maxGbps) {
		return nil, fmt.Errorf("%g Gb/s: write a speed up to %d", q.Gbps, maxGbps)
	}
	spec, name, err := s.declared(ctx, &q.Spec)
	if err != nil {
		return nil, err
	}
	root := spec.Root.Clone()
	n := 0
	for _, e := range root.All("net") {
		e.Set("speed", strconv.FormatInt(int64(math.Round(q.Gbps*1000)), 10))
		n++
	}
	if n == 0 {
		return nil, fmt.Errorf("%s: the machine has no NIC", name)
	}
	out := fmt.Sprintf("%s-nic%g.xml", strings.TrimSuffix(name, ".xml"), q.Gbps)
	data := topoxml.Write(root)
	if old, err := s.read(out); err == nil && bytes.Equal(old, data) {
		return Changed{out, n}, nil
	}
	return Changed{out, n}, s.Put(out, data)
}
