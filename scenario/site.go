package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/machine"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/tuning/netplugin"
	"github.com/simccl/simccl/tuning/tunerfile"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload/inputs"
)

// Options are a run's surroundings: where files come from and go to, and who
// listens. None of it changes a result. The zero value reads no files.
type Options struct {
	// Files is what the Spec's file names refer to. An fs.FS that takes names as
	// a shell does ("../a.xml") is fine: names are passed on as they are.
	Files fs.FS
	// Settings are NCCL's settings from outside the Spec: environment and
	// configuration files. NCCL.Env takes precedence.
	Settings config.Sources
	// Convert, if not nil, makes NCCL's topology file of what describes a machine in another
	// form: lstopo's XML, the matrix of nvidia-smi topo -m, a log of NCCL, a description.
	Convert func(data []byte, name string) (*Converted, error)
	// Create begins an output file; nil where nothing can be written.
	Create func(name string) (File, error)
	// Scratch opens a temporary file near an output file; nil: memory.
	Scratch func(near string) (chrome.Spool, error)
	// Program names the version of the program in what is written.
	Program string
	// Warn, if not nil, is called with each warning, one line each: a *FieldError
	// where a member of the Spec is meant, a *LintWarning of a topology file.
	Warn func(err error)
	// Cancelled, if not nil, is polled while files are parsed and graphs searched;
	// its error ends that.
	Cancelled func() error
	// Workers is how many points are simulated at a time, or, of fewer points, how many
	// processors they use together; 0: all of them. It does not change results.
	Workers int
	// Budget is what a simulated operation may take of a processor by forecast, 0 for a minute; what would
	// take more is refused, but by Engine.Fold exact and off.
	Budget units.Time
	// Planner, if not nil, makes the plans of a run of f in NCCL's place: those of a schedule of
	// others. Such a run folds no ranks, since a schedule need not treat them equal.
	Planner func(site *Site, f coll.Func) (Planner, error)
}

// Planner makes the plan of an operation, which it has proved; nil: NCCL's own.
type Planner func(comm.Op) (*plan.Plan, error)

// InputError is an input file of which no machine can be made: unreadable, or
// with contents that are wrong. It wraps the reader's error, which has the place.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// Site is a loaded machine: everything up to the communicator.
type Site struct {
	Config  *config.Config
	Cluster *fabric.Cluster
	Comm    *comm.Comm      // nil after Layout
	fabric  []byte          // the file that Network was read from
	Network *fabric.Network // between the nodes; nil for an ideal one
	Name    string          // base names of the topologies
	Digest  string          // SHA-256 of the topologies' bytes, hexadecimal

	class    func() *gpu.Class
	graphs   []byte     // of NCCL_GRAPH_FILE
	rows     []byte     // of NCCL_TUNER_CONFIG_FILE
	named    bool       // the topology is that of a file, not the built-in one
	measured bool       // the class is that of a file
	split    *split     // nil where all ranks are one communicator
	plugin   string     // whose settings hold where the user has none
	kind     string     // network class that the Spec or the machines' names say
	budget   units.Time // of a simulated operation

	textsMu sync.Mutex
	texts   map[[2]bool][]byte // of classText
}

// Class has the speeds of GPUs, links and NICs. It is the site's own: callers leave it as
// it is. One that is built in is read at the first call, since decisions do without.
func (m *Site) Class() *gpu.Class { return m.class() }

// Facts are what the effect of a variable depends on here.
func (m *Site) Facts() config.Facts {
	f := config.FactsOf(m.Comm)
	var specs []*topo.Spec
	for i := range m.Cluster.Classes {
		specs = append(specs, m.Cluster.Classes[i].Host.Spec)
	}
	f.HCAs, f.Allowed = topo.HCAs(specs, m.Config.Text("NCCL_IB_HCA").Value)
	return f
}

// loader reads a Spec's files.
type loader struct {
	spec *Spec
	opt  *Options
	site *Site
	// sources are where the topologies come from: by entry of Machine.Nodes, and by member once
	// devices are absent.
	sources []*source
}

// Load reads a Spec's files and joins its communicator. Errors are *FieldErrors,
// *config.Errors, *InputErrors, or those of comm.New.
func Load(spec *Spec, opt Options) (*Site, error) {
	l, err := layout(spec, &opt)
	if err != nil {
		return nil, err
	}
	p := l.site.Config.Comm()
	p.Multicast = spec.Machine.multicast()
	if p.Given, err = l.graphFile(); err != nil {
		return nil, err
	}
	if p.Tuning.Plugin, err = l.tunerFile(); err != nil {
		return nil, err
	}
	if cl := l.site.Cluster; p.Tuning.Plugin == nil && l.site.plugin != "" &&
		!l.site.Config.Text("NCCL_TUNER_PLUGIN").Set {
		p.Tuning.Plugin = netplugin.Tuner(l.site.kind, cl.NRanks(), cl.NHosts(),
			netplugin.SM(cl.Locate(0).System))
	}
	if l.site.Comm, err = comm.New(l.site.Cluster, p); err != nil {
		return nil, err
	}
	if err := l.dump(); err != nil || spec.Machine.Split == "" {
		return l.site, err
	}
	return l.site, l.site.divide(spec)
}

// Layout reads a Spec's files and lays the nodes out, without a communicator.
func Layout(spec *Spec, opt Options) (*Site, error) {
	l, err := layout(spec, &opt)
	if err != nil {
		return nil, err
	}
	return l.site, nil
}

func layout(spec *Spec, opt *Options) (*loader, error) {
	l := &loader{spec: spec, opt: opt, site: &Site{budget: opt.Budget}}
	var c checks
	c.machine(&spec.Machine)
	c.env(spec.NCCL.Env)
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	l.site.kind = l.networkNamed()
	if p := netplugin.Of(l.site.kind); p != nil {
		opt.Settings.Plugin, opt.Settings.PluginName, l.site.plugin = p.Settings, p.Name, p.Name
	}
	members, err := l.settled()
	if err != nil {
		return nil, err
	}
	hosts, err := l.hosts(members)
	if err != nil {
		return nil, err
	}
	if f := spec.Network.Fabric; f != "" && !netpreset.Named(f) {
		data, err := opt.ReadAs(f, maxNetwork, inputs.Fabric)
		if err != nil {
			return nil, bad(netpreset.Nowhere(f, inner(err)))
		}
		if l.site.Network, err = fabric.ParseNetwork(data, f); err != nil {
			return nil, bad(err)
		}
		l.site.fabric = data
		if err := l.place(hosts); err != nil {
			return nil, err
		}
		l.rails()
	}
	if members, err = l.absent(members); err != nil {
		return nil, err
	}
	files := members
	if members, err = l.domains(members); err != nil {
		return nil, err
	}
	p := l.site.Config.Topo
	if k := spec.Machine.GPUs; k > 0 {
		for _, m := range members {
			n, err := topo.CountGPUs(m.Spec, &p)
			if err != nil {
				return nil, bad(err)
			}
			if k > n {
				return nil, &FieldError{Path: "machine.gpus", Value: fmt.Sprint(k),
					Problem: fmt.Sprintf("%s has only %d GPUs", m.Spec.Name, n)}
			}
		}
		p.GPUs = units.Some(k)
	}
	if l.site.Cluster, err = fabric.New(members, p); err != nil {
		return nil, bad(err)
	}
	l.doubts(files)
	if f := spec.Network.Fabric; netpreset.Named(f) {
		if l.site.Network, err = netpreset.Build(f, l.site.Cluster); err != nil {
			return nil, err
		}
	}
	return l, l.class()
}

// rails gives nets the rails and planes that the fabric file says.
func (l *loader) rails() {
	nets, c := l.site.Network.Nets, l.site.Config
	if len(nets) > 0 && !c.Rules.Topo.NetRails {
		l.opt.warn(&FieldError{Path: "network.fabric", Problem: "NCCL " + c.Rules.Version() +
			" reads no rails and planes of nets", Hint: "2.30.7 is the first that does"})
		return
	}
	c.Topo.Rails = nets
}

// networkNamed is the network class that the Spec or the machines' names say.
func (l *loader) networkNamed() string {
	var names []string
	for _, n := range l.spec.Machine.Nodes {
		names = append(names, n.Topo)
	}
	return classNamed(l.spec.Network.Class, names, func(name string) bool {
		_, err := l.opt.read(name, maxTopology)
		return err == nil
	})
}

// settled reads the settings and the topologies. Where no release is named, machines of AMD have RCCL's
// rules, and with them other settings: what was warned of before is forgotten then.
func (l *loader) settled() ([]fabric.Member, error) {
	warn, held := l.opt.Warn, []error(nil)
	l.opt.Warn = func(err error) { held = append(held, err) }
	defer func() {
		l.opt.Warn = warn
		for _, err := range held {
			l.opt.warn(err)
		}
	}()
	if err := l.settings(); err != nil {
		return nil, err
	}
	before := len(held)
	members, err := l.members()
	if n := l.spec.Machine.NVLinkDomain; err == nil && n > 1 && slices.ContainsFunc(members, ofAMD) {
		return nil, &FieldError{Path: "machine.nvlinkDomain", Value: fmt.Sprint(n),
			Problem: "GPUs of AMD have no links to another node", Hint: "leave it out"}
	}
	if err != nil || l.spec.NCCL.Version != "" || l.opt.Settings.Rules != nil ||
		!slices.ContainsFunc(members, ofAMD) {
		return members, err
	}
	files := held[before:]
	held, l.opt.Settings.Rules = nil, rules.DefaultRCCL()
	err = l.settings()
	held = append(held, files...)
	return members, err
}

// ofAMD reports whether a machine's GPUs are AMD's.
func ofAMD(m fabric.Member) bool { return m.Spec.Library() == rules.RCCL }

// settings merges the Spec's variables over those of the surroundings.
func (l *loader) settings() error {
	src := l.opt.Settings
	if v := l.spec.NCCL.Version; v != "" {
		r, note, err := release.Select(v)
		if err != nil {
			return &FieldError{Path: "nccl.version", Value: v, Problem: err.Error()}
		}
		if src.Rules = r; note != "" {
			l.opt.warn(&ReleaseNote{note})
		}
	}
	for _, name := range sorted(l.spec.NCCL.Env) {
		src.Flags = append(src.Flags[:len(src.Flags):len(src.Flags)], name+"="+l.spec.NCCL.Env[name])
	}
	cfg, err := Settings(src, l.opt.warn, l.opt.Cancelled)
	l.site.Config = cfg
	return err
}

// maxWarnings bounds what is reported of a configuration file that is none.
const maxWarnings = 100

// ReleaseVariable names the release whose rules hold where nothing else does.
const ReleaseVariable = "SIMCCL_NCCL_VERSION"

// ReleaseNote says which release of NCCL answers, where that is not plainly the one
// that was named.
type ReleaseNote struct{ Text string }

func (e *ReleaseNote) Error() string { return e.Text }

// Settings reads settings, passes their warnings on and has the stages poll
// cancelled, if it is not nil. Sources without rules get those of the release that
// ReleaseVariable names.
func Settings(src config.Sources, warn func(error), cancelled func() error) (*config.Config, error) {
	if src.Rules == nil {
		v, _ := src.Getenv(ReleaseVariable)
		r, note, err := release.Select(v)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", ReleaseVariable, v, err)
		}
		if src.Rules = r; note != "" {
			warn(&ReleaseNote{note})
		}
	}
	cfg, warnings, err := config.Load(src)
	for i, w := range warnings {
		if i == maxWarnings {
			warn(fmt.Errorf("%d more warnings of settings", len(warnings)-i))
			break
		}
		warn(errors.New(w.String()))
	}
	if err == nil && cancelled != nil {
		cfg.Cancel(cancelled)
	}
	return cfg, err
}

// defaultNodes is how many of the built-in machine there are.
const defaultNodes = 2

// source is where the topology of an entry of Machine.Nodes comes from.
type source struct {
	TopologyFile
	file   string // as it was asked for
	shown  string // in tables
	count  int
	domain int // hosts of a built-in machine that share one NVLink domain; 0: the file says it
}

// source reads the topology of an entry. NCCL_TOPO_FILE applies to one without.
func (l *loader) source(n Nodes) (*source, error) {
	s := &source{file: n.Topo, count: max(n.Count, 1)}
	if v := l.site.Config.Text("NCCL_TOPO_FILE"); s.file == "" && v.Set && v.Value != "" {
		s.file = v.Value
	}
	if s.file == "" {
		s.file, s.shown = builtin.DGXH100Name, builtin.DGXH100Name
		s.Name, s.Data = s.file, builtin.DGXH100()
		if n.Count == 0 {
			s.count = defaultNodes
		}
		return s, nil
	}
	read, err := l.opt.ReadTopology(s.file)
	if err != nil {
		return nil, err
	}
	s.TopologyFile, s.shown = *read, path.Base(s.file)
	if l.site.named = true; read.Machine != nil {
		s.domain = read.Machine.Domain
	}
	return s, nil
}

// members reads the topologies.
func (l *loader) members() ([]fabric.Member, error) {
	nodes := l.spec.Machine.Nodes
	if len(nodes) == 0 {
		nodes = []Nodes{{}}
	}
	var members []fabric.Member
	var names []string
	sum := sha256.New()
	for _, n := range nodes {
		s, err := l.source(n)
		if err != nil {
			return nil, err
		}
		sum.Write(s.Data)
		spec, err := topoxml.Parse(s.Data, s.Name)
		if err != nil {
			return nil, bad(err)
		}
		for _, w := range spec.Warnings {
			l.opt.warn(fmt.Errorf("%v", w))
		}
		if s.Template {
			return nil, bad(unequipped(spec, s.file))
		}
		spec.Name = s.file // what was made of another form goes by its file
		members, names, l.sources = append(members, fabric.Member{Spec: spec, Count: s.count}),
			append(names, s.shown), append(l.sources, s)
	}
	l.site.Name, l.site.Digest = strings.Join(names, ","), hex.EncodeToString(sum.Sum(nil))
	return members, nil
}

// unequipped is the error of a file that names places of GPUs and NICs only.
func unequipped(spec *topo.Spec, file string) error {
	err := decl.NoGPU(spec)
	p := machine.PlacesOf(spec.Root)
	if len(p.GPUs) == 0 {
		return err
	}
	var e *decl.Error
	if errors.As(err, &e) {
		e.Problem = fmt.Sprintf("no <gpu>: the file names places only, of %d GPUs and %d NICs, as vendors "+
			"publish them", len(p.GPUs), len(p.NICs))
		e.Hint = p.Command(file) + " completes it (kinds of " + p.Kinds() +
			"), or run NCCL with NCCL_TOPO_DUMP_FILE on the machine"
	}
	return err
}

// absent takes out the devices without which the job was restarted.
func (l *loader) absent(members []fabric.Member) ([]fabric.Member, error) {
	a := absencesOf(l.spec.Network.Faults)
	if a == nil {
		return members, nil
	}
	cl, err := fabric.New(members, l.site.Config.Topo)
	if err != nil {
		return nil, bad(err)
	}
	out, parents, err := a.remove(members, cl, l.site.Network)
	if err != nil {
		return nil, &FieldError{Path: "network.faults", Problem: err.Error()}
	}
	var sources []*source
	for _, p := range parents {
		sources = append(sources, l.sources[p])
	}
	if l.sources = sources; l.site.Network != nil {
		a.rewire(l.site.Network)
	}
	return out, nil
}

// class finds the machine class, and puts the quantities of the network in place of its
// own. A file of a machine class says itself what NICs cost.
func (l *loader) class() (err error) {
	read := func(name string) ([]byte, error) { return l.opt.ReadAs(name, maxClass, inputs.MachineClass) }
	system, name := l.site.Cluster.Locate(0).System, l.spec.Machine.Class
	l.site.measured = isClassFile(name)
	if l.site.class, err = machineClass(name, system, read); err != nil {
		return classError("machine.class", name, err)
	}
	if name = l.spec.Network.Class; name == "" && !l.site.measured {
		name = classOf(l.site.kind, system)
	}
	l.site.class, err = networkClass(l.site.class, name, func(name string) ([]byte, error) {
		return l.opt.ReadAs(name, maxClass, inputs.NetworkClass)
	})
	return classError("network.class", name, err)
}

// classError places an error about a class.
func classError(member, name string, err error) error {
	if err != nil && !isClassFile(name) {
		return &FieldError{Path: member, Problem: err.Error(), Hint: "a file is written with its path, ./" +
			name}
	}
	return bad(err)
}

// graphFile reads the graphs of NCCL_GRAPH_FILE, which take the place of searched
// ones; nil without it. Every node takes them for its own GPUs.
func (l *loader) graphFile() (func(*topo.System) ([]*search.Graph, error), error) {
	v := l.site.Config.Text("NCCL_GRAPH_FILE")
	if !v.Set || v.Value == "" {
		return nil, nil
	}
	data, err := l.opt.ReadAs(v.Value, maxTopology, inputs.Graphs)
	if err != nil {
		return nil, err
	}
	l.site.graphs = data
	return func(sys *topo.System) ([]*search.Graph, error) {
		given, err := graphxml.Parse(data, v.Value, sys)
		return given, bad(err)
	}, nil
}

// tunerFile reads the rows of the example tuner, where it is the plugin; nil without.
func (l *loader) tunerFile() (p *tuning.Plugin, err error) {
	c, read := l.site.Config, func(name string) ([]byte, error) {
		return l.opt.ReadAs(name, maxTopology, inputs.Tuner)
	}
	p, l.site.rows, err = tunerfile.Load(c.Text("NCCL_TUNER_PLUGIN").Value,
		c.Text("NCCL_TUNER_CONFIG_FILE").Value, read, l.opt.warn)
	return p, err
}

// Between is what joins the nodes.
func (m *Site) Between() gpu.Network {
	if m.Comm.NNodes < 2 {
		return gpu.NoNetwork
	}
	for i := range m.Cluster.Classes {
		s := m.Cluster.Classes[i].Host.System(0)
		for _, id := range s.Of(topo.NET) {
			if s.Nodes[id].Net.Sockets {
				return gpu.Sockets
			}
		}
	}
	return gpu.RDMA
}

// Settings lists the NCCL variables that a source set, NAME and value, by name.
func (m *Site) Settings() [][2]string { return m.settings("NCCL_") }

func (m *Site) settings(prefix string) [][2]string {
	var out [][2]string
	for _, row := range config.EnvRows(m.Config, config.Facts{}, false) {
		if row.Set && strings.HasPrefix(row.Name, prefix) {
			out = append(out, [2]string{row.Name, row.Value})
		}
	}
	return out
}
