package machines

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/lstopo"
	"github.com/simccl/simccl/topo/machine"
	"github.com/simccl/simccl/topo/smi"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/spf13/pflag"
)

// ConvertHelp says what topo convert reads.
const ConvertHelp = `convert writes a topology in the form of NCCL_TOPO_DUMP_FILE, which NCCL can
read: one element a line, unknown elements and attributes kept. --fused writes
what the local ranks agree on instead, without what no rank uses. --anonymous
replaces guids and host hashes by numbers.

FILE may also be one of these; what it does not say is assumed, with a warning,
or an error that names what to give:

  the output of nvidia-smi topo -m   no kinds of GPU, NIC and CPU
  what lstopo --of xml wrote         no NVLinks (--nvlink), no speeds of NICs
  a log of NCCL (NCCL_DEBUG=INFO,    no device ids; the node's switches as NCCL
  NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH)  joined them, NICs without names

--spec prints a description, to be corrected for topo gen, of these and of any
topology file that a description can say.`

// Convert are the options of topo convert for files that are no topology.
type Convert struct {
	kinds  machine.Kinds
	nvlink string
	node   int
	spec   bool
}

// Register declares the options.
func (c *Convert) Register(f *pflag.FlagSet) {
	f.StringVar(&c.kinds.GPU, "gpu-kind", "", "the `KIND` of the GPUs, as topo gen has it (default found out or guessed)")
	f.StringVar(&c.kinds.NIC, "nic-kind", "", "the `KIND` of the NICs (default found out or guessed)")
	f.StringVar(&c.kinds.CPU, "cpu-kind", "", "the `KIND` of the CPUs (default found out or guessed)")
	f.StringVar(&c.nvlink, "nvlink", "", "of lstopo's XML: take NVLinks from the output of nvidia-smi topo -m in `FILE` (default assumed)")
	f.IntVar(&c.node, "node", 0, "of a log: write node `N`, from 0")
	f.BoolVar(&c.spec, "spec", false, "print the description, as topo gen reads it")
}

// File converts a file that is no topology of NCCL's, and any with --spec; done is false for
// the others.
func (c *Convert) File(a *cli.App, name string) (done bool, err error) {
	if name == "" || builtin.Lookup(name) != nil {
		return false, nil
	}
	data, err := a.Read(name, process.MaxLog)
	if err != nil {
		return false, nil // the reader of topologies says what is wrong
	}
	text := string(data)
	var root *decl.Element
	var notes []string
	switch {
	case smi.Is(text):
		return true, c.matrix(a, text, name)
	case lstopo.Is(text):
		root, notes, err = c.lstopo(a, data, name)
	case strings.Contains(text, " NCCL INFO "), strings.HasPrefix(text, "\x1f\x8b"):
		root, notes, err = c.log(data, name)
	case c.spec:
		root, err = parse(data, name)
	default:
		return false, nil
	}
	if err != nil {
		return true, err
	}
	for _, n := range notes {
		a.Warn("%s: %s", name, n)
	}
	return true, c.print(a, root, name)
}

// parse reads NCCL's topology file.
func parse(data []byte, name string) (*decl.Element, error) {
	spec, err := topoxml.Parse(data, name)
	if err != nil {
		return nil, fail.Input(err)
	}
	return spec.Root, nil
}

// matrix converts the output of nvidia-smi topo -m.
func (c *Convert) matrix(a *cli.App, text, name string) error {
	s, err := smi.Parse(text, name, c.kinds)
	if err != nil {
		return err
	}
	for _, f := range s.Facts {
		if f.Estimated {
			a.Warn("%s: the kind of %s is %s", name, f.Of, f.Source)
		}
	}
	if c.spec {
		return a.PrintJSON(s)
	}
	root, err := s.Generate()
	if err != nil {
		return fail.Input(err)
	}
	return write(a, root)
}

// lstopo converts lstopo's XML, with NVLinks of a matrix beside it.
func (c *Convert) lstopo(a *cli.App, data []byte, name string) (*decl.Element, []string, error) {
	given := lstopo.Given{Kinds: c.kinds}
	if c.nvlink != "" {
		text, err := a.Read(c.nvlink, process.MaxSettings)
		if err != nil {
			return nil, nil, err
		}
		if !smi.Is(string(text)) {
			return nil, nil, fail.File("%s:1:1: no output of nvidia-smi topo -m; write it to the file whole", c.nvlink)
		}
		s, err := smi.Parse(string(text), c.nvlink, c.kinds)
		if err != nil {
			return nil, nil, err
		}
		given.NVLink = &s.NVLink
	}
	return lstopo.Tree(data, name, given)
}

// log takes the machine out of NCCL's log.
func (c *Convert) log(data []byte, name string) (*decl.Element, []string, error) {
	log, err := ncclog.Read(ncclog.File{Name: name, Data: data})
	if err != nil {
		return nil, nil, fail.Input(err)
	}
	m, err := logcheck.Topology(log)
	if err != nil {
		return nil, nil, fail.Input(fmt.Errorf("%s: %w", name, err))
	}
	notes, at := m.Notes, 0
	if len(m.Env) > 0 {
		notes = append(notes, "settings of the log that bear on decisions: "+strings.Join(m.Env, " "))
	}
	for _, n := range m.Nodes {
		if at += n.Count; c.node < at && c.node >= 0 {
			if len(m.Nodes) > 1 {
				notes = append(notes, fmt.Sprintf("the log has nodes of %d shapes; this is node %d, --node has the others", len(m.Nodes), c.node))
			}
			root, err := parse(n.File.Data, fmt.Sprintf("%s (node %d as XML)", name, c.node))
			return root, notes, err
		}
	}
	return nil, nil, fail.Usage("--node %d: the log has nodes 0 to %d", c.node, at-1)
}

// print writes a topology, or its description.
func (c *Convert) print(a *cli.App, root *decl.Element, name string) error {
	if !c.spec {
		return write(a, root)
	}
	base := filepath.Base(name)
	s, err := machine.Describe(root, strings.TrimSuffix(base, filepath.Ext(base)))
	if err != nil {
		return fail.Input(err)
	}
	for _, f := range s.Facts {
		a.Warn("%s: %s: %s", name, f.Of, f.Source)
	}
	return a.PrintJSON(s)
}
