// Package anyhost builds NCCL's tree of a host from any description of one: a topology file (also a vendor's
// that only has PCI places), lstopo's XML, the matrix of nvidia-smi topo -m, a log of NCCL, or a description
// for topo gen. topo convert and --topo share it.
//
// What it must not know: files, flags, what is decided on a machine.
package anyhost

import (
	"errors"
	"fmt"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/lstopo"
	"github.com/simccl/simccl/topo/machine"
	"github.com/simccl/simccl/topo/smi"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/workload/inputs"
)

// Given supplies what a file does not state.
type Given struct {
	Kinds machine.Kinds
	// NVLink is the output of nvidia-smi topo -m, which has the NVLinks that lstopo's XML and
	// vendors' files do not have, and the name of its file; nil: NVLinks are assumed.
	NVLink     []byte
	NVLinkFile string
	Node       int    // of a log, from 0
	Version    string // in place of the release of a log
}

// Host is the result of Read.
type Host struct {
	Kind  inputs.Kind
	Root  *decl.Element // NCCL's tree
	Spec  *machine.Spec // its description, where it was made of one; nil otherwise
	Notes []string      // what was assumed, without the name of the file
	// Label names the generated tree in messages about its lines, which are not lines of the file.
	Label string
}

// XML returns the host as a topology file of NCCL.
func (h *Host) XML() []byte { return topoxml.Write(h.Root) }

// Read builds a host from a content. It refuses members of Given that do not apply to the content. Errors
// have a position; an *inputs.OtherError names a content that describes no machine.
func Read(data []byte, name string, g Given) (*Host, error) {
	if err := g.Kinds.Check(); err != nil {
		return nil, fail.Usage("%v", err)
	}
	v := inputs.Of(data)
	if err := v.Want(name, inputs.Machines()...); err != nil {
		return nil, fail.Input(err)
	}
	kind := machineKind(&v)
	if err := g.unused(kind, name); err != nil {
		return nil, err
	}
	h := &Host{Kind: kind, Label: name}
	text := v.Text
	switch kind {
	case inputs.NCCLLog, inputs.SystemPrint, inputs.Matrix:
		text = data // their readers unpack, and name places in the file
	case inputs.Topology, inputs.TopologyHosts, inputs.Template:
		text = v.XML()
	}
	if err := h.read(text, name, &g); err != nil {
		return nil, err
	}
	return h, nil
}

// machineKind returns the first kind of a verdict that describes a machine.
func machineKind(v *inputs.Verdict) inputs.Kind {
	for _, f := range v.Found {
		for _, k := range inputs.Machines() {
			if f.Kind == k {
				return k
			}
		}
	}
	return inputs.Topology // its reader says what is wrong
}

// unused refuses options that have no effect on a kind of file.
func (g *Given) unused(kind inputs.Kind, name string) error {
	places := kind == inputs.Template || kind == inputs.Lstopo
	kinds := places || kind == inputs.Matrix
	return g.without(kinds, places, kind == inputs.NCCLLog || kind == inputs.SystemPrint, name+", which is "+
		kind.What())
}

// None returns an error if any member is set; for machines that are not read from a file.
func (g *Given) None(what string) error { return g.without(false, false, false, what) }

func (g *Given) without(kinds, links, node bool, what string) error {
	for _, o := range []struct {
		option      string
		given, used bool
	}{
		{"--gpu-kind", g.Kinds.GPU != "", kinds}, {"--nic-kind", g.Kinds.NIC != "", kinds},
		{"--cpu-kind", g.Kinds.CPU != "", kinds},
		{"--nvlink", g.NVLinkFile != "", links}, {"--node", g.Node != 0, node},
	} {
		if o.given && !o.used {
			return fail.Usage("%s has no effect on %s; leave it out", o.option, what)
		}
	}
	return nil
}

func (h *Host) read(data []byte, name string, g *Given) (err error) {
	var notes []string
	switch h.Kind {
	case inputs.Matrix:
		return h.matrix(data, name, g)
	case inputs.Lstopo:
		var links *machine.NVLink
		var beside *smi.Matrix
		if links, beside, err = g.links(h); err == nil {
			h.Root, notes, err = lstopo.Tree(data, name, lstopo.Given{Kinds: g.Kinds, NVLink: links})
		}
		if err == nil && beside != nil {
			err = beside.Beside(h.Root)
		}
	case inputs.NCCLLog, inputs.SystemPrint:
		return h.log(data, name, g)
	case inputs.MachineSpec:
		return h.described(data, name)
	case inputs.Template:
		return h.template(data, name, g)
	default:
		h.Root, err = parse(data, name)
	}
	h.Notes = append(h.Notes, notes...)
	return fail.Input(err)
}

// template reads a vendor's file, and completes it where options ask for that.
func (h *Host) template(data []byte, name string, g *Given) (err error) {
	if h.Root, err = parse(data, name); err != nil {
		return err
	}
	if g.Kinds == (machine.Kinds{}) && g.NVLinkFile == "" {
		h.Notes = []string{"places of GPUs and NICs only; " + machine.PlacesOf(h.Root).Command(name) +
			" completes it"}
		return nil
	}
	links, _, err := g.links(h) // not its paths: the file replaces those that a VM shows
	if err != nil {
		return err
	}
	notes, err := machine.Complete(h.Root, g.Kinds, links)
	h.Notes = append(h.Notes, notes...)
	var at *machine.PlacesError
	if err != nil && !errors.As(err, &at) {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return fail.Input(err)
}

// parse reads NCCL's topology file.
func parse(data []byte, name string) (*decl.Element, error) {
	spec, err := topoxml.Parse(data, name)
	if err != nil {
		return nil, fail.Input(err)
	}
	return spec.Root, nil
}

// matrix reads the output of nvidia-smi topo -m.
func (h *Host) matrix(data []byte, name string, g *Given) (err error) {
	if h.Spec, err = smi.Parse(string(data), name, g.Kinds); err != nil {
		return err
	}
	for _, f := range h.Spec.Facts {
		if f.Estimated {
			h.Notes = append(h.Notes, f.Of+": "+f.Source)
		}
	}
	return h.generate(name)
}

// generate builds the tree from the description in h.Spec.
func (h *Host) generate(name string) (err error) {
	h.Label = name + " (as XML)"
	h.Root, err = h.Spec.Generate()
	return fail.Input(err)
}

// described reads a description for topo gen.
func (h *Host) described(data []byte, name string) (err error) {
	if h.Spec, err = machine.Parse(data, name); err != nil {
		return fail.Input(err)
	}
	return h.generate(name)
}

// links returns the NVLinks of the nvidia-smi matrix given in addition to a file, and the matrix; nil without
// one.
func (g *Given) links(h *Host) (*machine.NVLink, *smi.Matrix, error) {
	if g.NVLinkFile == "" {
		return nil, nil, nil
	}
	if err := inputs.Want(g.NVLink, g.NVLinkFile, inputs.Matrix); err != nil {
		return nil, nil, fail.Input(err)
	}
	m, err := smi.Read(string(g.NVLink), g.NVLinkFile)
	if err != nil {
		return nil, nil, err
	}
	s, err := m.Spec(g.Kinds)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range s.Facts {
		if f.Of == "nvlink" || f.Of == "matrix" {
			h.Notes = append(h.Notes, f.Of+": "+f.Source)
		}
	}
	return &s.NVLink, m, nil
}

// log extracts the machine from a log of NCCL.
func (h *Host) log(data []byte, name string, g *Given) error {
	log, err := ncclog.Read(ncclog.File{Name: name, Data: data})
	if err != nil {
		return fail.Input(err)
	}
	m, err := logcheck.Topology(log, g.Version)
	if err != nil {
		return fail.Input(fmt.Errorf("%s: %w", name, err))
	}
	h.Notes = m.Notes
	if len(m.Env) > 0 {
		h.Notes = append(h.Notes, "settings of the log that bear on decisions: "+strings.Join(m.Env, " "))
	}
	at, node := 0, g.Node
	for _, n := range m.Nodes {
		if at += n.Count; node < at && node >= 0 {
			if len(m.Nodes) > 1 {
				h.Notes = append(h.Notes,
					fmt.Sprintf("the log has nodes of %d shapes; this is node %d, topo convert --node has "+
						"the others", len(m.Nodes), node))
			}
			h.Label = fmt.Sprintf("%s (node %d as XML)", name, node)
			h.Root, err = parse(n.File.Data, h.Label)
			return err
		}
	}
	return fail.Usage("--node %d: the log has nodes 0 to %d", node, at-1)
}
