package diagnose

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// trial is a machine in the making: a bench's Spec that a suspect changes, with files of its own.
type trial struct {
	*bench
	spec  scenario.Spec
	files map[string][]byte
}

func (b *bench) trial() *trial {
	return &trial{bench: b, spec: b.spec.Clone(), files: map[string][]byte{}}
}

// over puts files in front of a file system.
type over struct {
	under fs.FS
	files map[string][]byte
}

// Open opens a file that lies under; those in front are read by ReadLimited.
func (o over) Open(name string) (fs.File, error) {
	if o.under == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return o.under.Open(name)
}

// ReadLimited reads a file of at most limit bytes.
func (o over) ReadLimited(name string, limit int64) ([]byte, error) {
	if data, ok := o.files[name]; ok {
		return data, nil
	}
	if l, ok := o.under.(scenario.LimitedFS); ok {
		return l.ReadLimited(name, limit)
	}
	return bounded.ReadFS(o, name, limit)
}

// perTrial is what a suspect may cost at one size by forecast: more than a hundred sizes of suspects are
// simulated for a table.
const perTrial = 4 * units.Second

// ready loads the changed machine.
func (t *trial) ready() (*scenario.Running, error) {
	opt := t.opt
	opt.Files, opt.Warn, opt.Budget = over{t.opt.Files, t.files}, nil, cmp.Or(opt.Budget, perTrial)
	r, err := scenario.Prepare(t.spec, opt)
	if err != nil {
		return nil, err
	}
	if r.Site.Comm.NRanks != t.run.Site.Comm.NRanks {
		return nil, fmt.Errorf("%d ranks are left of %d", r.Site.Comm.NRanks, t.run.Site.Comm.NRanks)
	}
	r.OfDraws = 1
	return r, nil
}

// env sets NCCL's variables.
func (t *trial) env(kv ...string) {
	env := maps.Clone(t.spec.NCCL.Env)
	if env == nil {
		env = map[string]string{}
	}
	for _, s := range kv {
		k, v, _ := strings.Cut(s, "=")
		if env[k] = v; v == "" {
			delete(env, k)
		}
	}
	t.spec.NCCL.Env = env
}

func (t *trial) fault(format string, args ...any) {
	t.spec.Network.Faults = append(t.spec.Network.Faults, fmt.Sprintf(format, args...))
}

// only leaves some of all NICs of the nodes.
func (t *trial) only(all, some []string) {
	t.spec.Network.Faults = slices.DeleteFunc(t.spec.Network.Faults, func(f string) bool {
		return strings.HasSuffix(f, ":absent")
	})
	for _, name := range all {
		if !slices.Contains(some, name) {
			t.fault("nic=%s:absent", name)
		}
	}
}

// topology has edit change the topology file of the nodes. The machine stays what it is in all
// other respects: its network class does not go with its name.
func (t *trial) topology(edit func([]byte) []byte) error {
	if len(t.spec.Machine.Nodes) != 1 {
		return fmt.Errorf("nodes of several kinds")
	}
	name := t.spec.Machine.Nodes[0].Topo
	opt := t.opt
	opt.Warn = nil
	f, err := opt.ReadTopology(name)
	if err != nil {
		return err
	}
	data := edit(f.Data)
	if bytes.Equal(data, f.Data) {
		return fmt.Errorf("nothing to change in the topology")
	}
	t.files["changed.xml"] = data
	t.spec.Machine.Nodes[0].Topo = "changed.xml"
	if t.spec.Network.Class == "" && f.Machine != nil {
		if t.spec.Network.Class = t.run.Site.Class().Network; t.spec.Network.Class == "" &&
			t.run.Site.Comm.NNodes > 1 {
			t.spec.Network.Class = "infiniband"
		}
	}
	return nil
}

// network has edit change the fabric.
func (t *trial) network(edit func(*fabric.Network)) error {
	data, err := fs.ReadFile(t.opt.Files, t.spec.Network.Fabric)
	if err != nil {
		return err
	}
	n, err := fabric.ParseNetwork(data, t.spec.Network.Fabric)
	if err != nil {
		return err
	}
	edit(n)
	t.files["network.json"] = n.Format()
	t.spec.Network.Fabric = "network.json"
	return nil
}

// leaves joins nodes by a leaf each, with so many times the rate to it that it has upwards. Cables are those
// of the NICs.
func (t *trial) leaves(nodes int, oversub float64) error {
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: nodes, Nets: len(t.nics()),
		Gbit: t.rate(), PerLeaf: 1, Oversub: oversub, Routing: fabric.Adaptive})
	if err != nil {
		return err
	}
	t.files["network.json"] = n.Format()
	t.spec.Network.Fabric = "network.json"
	return nil
}

var (
	nvlinks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<nvlink\b[^>]*/>\s*`) })
	widths  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`link_width="\d+"`) })
	bridges = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`class="0x0604[0-9a-f]*"`)
	})
)

func withoutNVLinks(xml []byte) []byte { return nvlinks().ReplaceAll(xml, nil) }

// lanes gives every PCIe link so many lanes.
func lanes(n int) func([]byte) []byte {
	return func(xml []byte) []byte {
		return widths().ReplaceAll(xml, fmt.Appendf(nil, `link_width="%d"`, n))
	}
}

// flat takes the PCIe switches out: GPUs and NICs hang on the CPUs, as in most virtual machines.
func flat(xml []byte) []byte {
	var out []byte
	depth, bridge := 0, []bool{}
	for len(xml) > 0 {
		at := bytes.IndexByte(xml, '<')
		end := bytes.IndexByte(xml, '>')
		if at < 0 || end < at {
			break
		}
		tag := xml[at : end+1]
		switch {
		case bytes.HasPrefix(tag, []byte("<pci")) && !bytes.HasSuffix(tag, []byte("/>")):
			is := bridges().Match(tag)
			bridge = append(bridge, is)
			depth++
			if out = append(out, xml[:at]...); !is {
				out = append(out, tag...)
			}
		case bytes.HasPrefix(tag, []byte("</pci")) && depth > 0:
			depth--
			if out = append(out, xml[:at]...); !bridge[depth] {
				out = append(out, tag...)
			}
			bridge = bridge[:depth]
		default:
			out = append(out, xml[:end+1]...)
		}
		xml = xml[end+1:]
	}
	return append(out, xml...)
}
