package diagnose

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
)

// scenarioOp is an operation as scenario simulates it.
type scenarioOp = scenario.Operation

func operation(op *comm.Op) scenarioOp {
	return scenarioOp{Type: op.Type, RedOp: op.RedOp, Root: int(op.Root), Count: op.Count,
		InPlace: op.InPlace}
}

// bench is the machine on which a table is simulated.
type bench struct {
	table *table
	spec  scenario.Spec
	opt   scenario.Options
	run   *scenario.Running
	// assumed: the machine is a built-in one, or made of one, since nothing names another.
	assumed bool
}

// given are what the Spec of a Request names, before files complete it.
type given struct {
	topo, nodes, gpus, fabric bool
}

func givenBy(s *scenario.Spec) given {
	g := given{gpus: s.Machine.GPUs > 0, fabric: s.Network.Fabric != ""}
	for _, n := range s.Machine.Nodes {
		g.topo = g.topo || n.Topo != ""
		g.nodes = g.nodes || n.Count > 0
	}
	return g
}

// benchOf completes the Spec of a Request for a table and loads its machine. What is assumed goes
// to q.missing.
func (q *work) benchOf(t *table) (*bench, error) {
	b := &bench{table: t, spec: q.Spec.Clone(), opt: q.Options}
	s := &b.spec
	s.Outputs, s.Grid = scenario.Outputs{}, nil
	s.Workload = scenario.Workload{Op: t.fn.TestName(), Sizes: []string{"8"}, Types: []string{t.rows[0].op.
		Type.String()}}
	s.Engine = scenario.Engine{NoProof: true, Launch: map[sim.Launch]string{sim.Graph: "graph"}[t.run.Launch]}
	if q.given.fabric = s.Network.Fabric != ""; !q.given.fabric && q.m.fabric != "" {
		s.Network.Fabric = q.m.fabric
	}
	q.settings(b)
	if err := q.place(b); err != nil {
		return nil, err
	}
	if err := q.adapters(b); err != nil {
		return nil, err
	}
	if err := q.load(b); err != nil {
		return nil, err
	}
	if s.NCCL.Version == "" && t.run.NCCL == 0 && (q.m.log == nil || q.m.log.Version == "") {
		q.miss(missRelease,
			"which NCCL ran (the first line of a log under NCCL_DEBUG=VERSION); the rules of "+
				b.run.Site.Config.Rules.Version()+" are taken")
	}
	return b, nil
}

// simulatedOn is the built-in machine that a table of simccl's own names; "" if there is none, or its
// file was another.
func simulatedOn(r *calibrate.Run) string {
	m := builtin.Lookup(strings.TrimSuffix(r.Topo, ".xml"))
	if m == nil || !m.AMD && fmt.Sprintf("%x", sha256.Sum256(m.XML()))[:12] != r.Digest {
		return ""
	}
	return m.Name
}

// adapters puts the names of a built-in machine's NICs in place of those of NCCL_IB_HCA, which are
// another machine's: as many as it names.
func (q *work) adapters(b *bench) error {
	s := &b.spec
	list, ok := s.NCCL.Env["NCCL_IB_HCA"]
	if !ok || len(s.Machine.Nodes) != 1 || !b.assumed && builtin.Lookup(s.Machine.Nodes[0].Topo) == nil {
		return nil
	}
	delete(s.NCCL.Env, "NCCL_IB_HCA")
	if err := b.prepare(); err != nil {
		return err
	}
	own := b.nics()
	names := strings.Split(strings.TrimLeft(list, "=^"), ",")
	if strings.HasPrefix(list, "^") || strings.Contains(list, " ") || len(names) >= len(own) {
		return nil
	}
	for _, n := range names {
		if n, _, _ = strings.Cut(n, ":"); !strings.ContainsAny(n, "0123456789") {
			return nil // a prefix, of all
		}
	}
	s.NCCL.Env["NCCL_IB_HCA"] = "=" + strings.Join(own[:len(names)], ",")
	q.note("NCCL_IB_HCA=%s: the built-in machine has NICs of other names; %s is taken", list,
		s.NCCL.Env["NCCL_IB_HCA"])
	return nil
}

// nics are the names of a node's NICs.
func (b *bench) nics() (out []string) {
	sys := b.run.Site.Cluster.Host(0).Systems[0]
	for _, id := range sys.Of(topo.NET) {
		out = append(out, sys.Nodes[id].Net.Name)
	}
	return out
}

// rate is that of a port of the fastest of a node's NICs, Gbit/s; 0 without NICs.
func (b *bench) rate() (gbit float64) {
	sys := b.run.Site.Cluster.Host(0).Systems[0]
	for _, id := range sys.Of(topo.NET) {
		n := sys.Nodes[id].Net
		gbit = max(gbit, 8*float64(n.BW)/float64(max(len(n.PortBW), 1)))
	}
	return gbit
}

// settings takes the table's own environment, the log's, and its release; what the Request has
// outranks both.
func (q *work) settings(b *bench) {
	s := &b.spec
	env := map[string]string{}
	for _, kv := range b.table.run.Env {
		k, v, _ := strings.Cut(kv, "=")
		if v, _, _ = strings.Cut(v, " ("); v != "" {
			env[k] = v
		}
	}
	maps.Copy(env, q.logged)
	maps.Copy(env, s.NCCL.Env)
	if s.NCCL.Env = env; len(env) == 0 {
		s.NCCL.Env = nil
	}
	if env["NCCL_MNNVL_ENABLE"] == "0" && s.Machine.NVLinkDomain == 0 {
		s.Machine.NVLinkDomain = 1 // each node by itself
	}
	if s.NCCL.Version != "" {
		return
	}
	version := ""
	if q.m.log != nil {
		version = q.m.log.Version
	}
	if c := b.table.run.NCCL; version == "" && c > 0 {
		version = versionOf(c)
	}
	if version == "" {
		return
	}
	taken, note := release.Recorded(version)
	if s.NCCL.Version = taken; note != "" {
		q.note("%s", note)
	}
}

// place says which nodes there are.
func (q *work) place(b *bench) error {
	s, r := &b.spec, b.table.run
	var like *likeness
	if !q.given.topo {
		topo := q.m.machine
		if topo != "" {
			topo = q.healthy(b, topo)
		}
		if topo == "" {
			name := simulatedOn(r)
			b.assumed = name == ""
			switch like = nearest(r); {
			case name != "":
				like = nil
			case r.Topo != "":
				return &scenario.FieldError{Path: "Topo",
					Problem: "the table was simulated on " + r.Topo + ", which is no built-in machine",
					Hint:    "name its file, --topo FILE"}
			case like != nil:
				name = like.name
				q.miss(missMachine, fmt.Sprintf("a topology of a node (NCCL_TOPO_DUMP_FILE=topo.xml, or "+
					"nvidia-smi topo -m): the built-in %s is assumed, for the table's %s", name, r.GPU))
			case modelOf(r.GPU) != "" && !strings.HasPrefix(r.GPU, "sm_"): // simccl's own tables have no name
				return &scenario.FieldError{Path: "Topo",
					Problem: fmt.Sprintf("no built-in machine has the table's GPUs, %d of %q a node",
						max(r.PerNode, r.Ranks/max(r.Nodes, 1)), r.GPU),
					Hint: "name the machine, --topo topo.xml"}
			default:
				q.miss(missMachine, "which machine it is (--topo, or the head of the table, which lists the "+
					"GPUs): the built-in dgx-h100 is assumed")
				name = "dgx-h100"
			}
			topo = name
		}
		count := 0
		if len(s.Machine.Nodes) > 0 {
			count = s.Machine.Nodes[0].Count
		}
		s.Machine.Nodes = []scenario.Nodes{{Topo: topo, Count: count}}
	}
	if !q.given.nodes && len(s.Machine.Nodes) == 1 {
		s.Machine.Nodes[0].Count = r.Nodes
	}
	if like != nil {
		q.fit(b, like)
	}
	if per, threads := max(r.PerThread, 1), max(r.Threads, 1); per*threads > 1 && r.Nodes > 0 {
		s.Engine.Threads = threads
		if s.Engine.Processes = r.Ranks / r.Nodes / (per * threads); s.Engine.Processes < 1 {
			s.Engine.Processes, s.Engine.Threads = 0, 0
		}
	}
	return nil
}

// load loads the machine: all GPUs of its nodes, or as many as the table has ranks.
func (q *work) load(b *bench) (err error) {
	if err = b.prepare(); err != nil {
		return err
	}
	want := b.table.run.Ranks
	site := b.run.Site
	switch {
	case want == 0:
		q.miss(missHead, fmt.Sprintf("the head of the table, which lists its GPUs: %d ranks are assumed",
			site.Comm.NRanks))
		return nil
	case site.Comm.NRanks == want || q.given.gpus:
	case site.Comm.NRanks > want && want%site.Comm.NNodes == 0:
		b.spec.Machine.GPUs = want / site.Comm.NNodes
		if err = b.prepare(); err == nil && b.run.Site.Comm.NRanks != want { // of one NVLink domain
			b.spec.Machine.GPUs = want
			err = b.prepare()
		}
	}
	if err == nil && b.run.Site.Comm.NRanks != want {
		return &scenario.FieldError{Path: "machine.nodes", Problem: fmt.Sprintf("the table has %d ranks, "+
			"the machine %d", want, b.run.Site.Comm.NRanks), Hint: "say it with --topo, --nodes and -g"}
	}
	return err
}

func (b *bench) prepare() (err error) {
	b.run, err = scenario.Prepare(b.spec, b.opt)
	return err
}

// loggedSettings are what a log says of the environment, as far as it bears on times.
func loggedSettings(m *material) map[string]string {
	out := map[string]string{}
	if m.log == nil {
		return out
	}
	if mc, err := logcheck.Topology(m.log, ""); err == nil {
		for _, kv := range mc.Env {
			k, v, _ := strings.Cut(kv, "=")
			out[k] = v
		}
		return out
	}
	for _, s := range m.log.Settings {
		if !slices.Contains(silent, s.Name) && strings.HasPrefix(s.Name, "NCCL_") &&
			!strings.HasPrefix(s.Name, "NCCL_DEBUG") && !strings.HasSuffix(s.Name, "_FILE") {
			out[s.Name] = s.Value
		}
	}
	return out
}

// silent are variables that say where, not how.
var silent = []string{"NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_COMM_ID", "NCCL_HOSTID",
	"NCCL_VERSION", "NCCL_CONF_FILE"}

// healthy is the machine of a file with GPUDirect where lines say that it was off: what it should be
// able to do. It is the file itself where they do not.
func (q *work) healthy(b *bench, name string) string {
	if !slices.ContainsFunc(q.m.facts, func(f fact) bool { return f.kind == "no-gpudirect" }) {
		return name
	}
	opt := b.opt
	opt.Warn = nil
	f, err := opt.ReadTopology(name)
	if err != nil {
		return name // Prepare meets the error again
	}
	able := bytes.ReplaceAll(f.Data, []byte(`gdr="0"`), []byte(`gdr="1"`))
	if bytes.Equal(able, f.Data) {
		return name
	}
	b.opt.Files = over{b.opt.Files, map[string][]byte{healthyName: able}}
	q.note("expected times are those of the machine with GPUDirect RDMA, which the log says is off")
	return healthyName
}

// healthyName is the name of a topology that was changed to what the machine should be.
const healthyName = "healthy.xml"
