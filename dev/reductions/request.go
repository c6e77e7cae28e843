// Package reductions shows what the simulator leaves out of an operation: a table of requests with
// the method that its policy chooses for each, and random requests to compare results with exact
// ones and to find what takes long.
//
// In: requests as the options of simccl run. Out: their Specs and the rows of the table.
package reductions

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/fabric"
)

// Request is an operation and the options of simccl run that matter here, as one line.
type Request string

// Args are the words of a request.
func (r Request) Args() []string { return strings.Fields(string(r)) }

// Spec is what a request says, as simccl run would take it, without the proof of plans.
func (r Request) Spec() (scenario.Spec, error) {
	var s scenario.Spec
	args := r.Args()
	if len(args) == 0 {
		return s, errors.New("a request begins with an operation")
	}
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.SetOutput(io.Discard)
	topo, nodes := f.String("topo", "dgx-h100", ""), f.Int("nodes", 2, "")
	sizes := f.String("sizes", "1G", "")
	f.IntVar(&s.Workload.Group, "m", 0, "")
	f.IntVar(&s.Machine.GPUs, "g", 0, "")
	register := f.Int("R", 0, "")
	f.StringVar(&s.Engine.Jitter, "jitter", "", "")
	f.StringVar(&s.Engine.Fold, "fold", "", "")
	f.StringVar(&s.Engine.Skip, "skip", "", "")
	f.StringVar(&s.Engine.Launch, "launch", "", "")
	f.StringVar(&s.Machine.Multicast, "multicast", "", "")
	f.StringVar(&s.NCCL.Version, "nccl-version", "", "")
	f.StringVar(&s.Network.Fabric, "fabric", "", "")
	f.Float64Var(&s.Workload.Imbalance, "imbalance", 0, "")
	f.Func("env", "", func(v string) error {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return fmt.Errorf("%s: write NAME=VALUE", v)
		}
		if s.NCCL.Env == nil {
			s.NCCL.Env = map[string]string{}
		}
		s.NCCL.Env[name] = value
		return nil
	})
	f.Func("fault", "", func(v string) error { s.Network.Faults = append(s.Network.Faults, v); return nil })
	if err := f.Parse(args[1:]); err != nil {
		return s, fmt.Errorf("%s: %w", r, err)
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("%s: %s is no option", r, f.Arg(0))
	}
	for kind := range strings.SplitSeq(*topo, ",") {
		name, count := kind, *nodes
		if at := strings.LastIndexByte(kind, ':'); at >= 0 {
			name = kind[:at]
			if _, err := fmt.Sscan(kind[at+1:], &count); err != nil {
				return s, fmt.Errorf("%s: %w", r, err)
			}
		}
		s.Machine.Nodes = append(s.Machine.Nodes, scenario.Nodes{Topo: name, Count: count})
	}
	s.Workload.Op, s.Workload.Sizes = args[0], strings.Split(*sizes, ",")
	s.Workload.Buffers = [...]string{"", "registered", "windows"}[max(0, min(*register, 2))]
	s.Engine.NoProof = true
	return s, nil
}

// Files has the networks that requests name: leaf-spine-HOSTSxNETS-PERLEAF-OVERSUB.json.
type Files struct{}

// Open implements fs.FS.
func (Files) Open(name string) (fs.File, error) {
	l, over := fabric.Layout{Kind: "leaf-spine", Gbit: 400}, 0
	n, err := fmt.Sscanf(name, "leaf-spine-%dx%d-%d-%d.json", &l.Hosts, &l.Nets, &l.PerLeaf, &over)
	if n < 4 || err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	l.Oversub = float64(over)
	made, err := fabric.Generate(l)
	if err != nil {
		return nil, err
	}
	return fstest.MapFS{name: &fstest.MapFile{Data: made.Format()}}.Open(name)
}

// equalMachines reports whether two Specs are of one machine with the same settings.
func equalMachines(a, b *scenario.Spec) bool {
	return fmt.Sprint(a.Machine, a.NCCL, a.Network) == fmt.Sprint(b.Machine, b.NCCL, b.Network) &&
		slices.Equal(a.Network.Faults, b.Network.Faults)
}
