package ruletest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/show"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Machines runs the conversations of a package about machines. Each begins with hosts:
//
//	hosts [NAME] [more] [n=N] [release=V] [multicast=on|off] [keep=0,1] [K=V...]
//
// makes N equal hosts of the lines below (XML), of testdata/topos/NAME.xml or, without both, of the lines
// before, with settings of NCCL ("+" for a blank), and says what is on the first; what else is asked is about
// these. With more they come after the hosts before.
//
//	nets                          speed, latency, ports, owner, rail and plane of each net
//	paths KIND KIND               kind, GB/s and nodes of each path (gpu, net, cpu, switch)
//	log                           what NCCL prints of the first host
//	peers                         transport between GPUs of the first host
//	direct                        who has GPUDirect RDMA, sending and receiving
//	refused                       what may not be used, and why
//	local                         nets of each GPU by turn
//	graph ring|tree|nvls|...      what is found
//	file                          of the graphs, as NCCL writes and reads it (NCCL_GRAPH_FILE)
//	given                         such a file below, which the next hosts read
//	channels, rings, trees        of all hosts
//	nvls                          channels by rank, and chunks
//	collnet                       heads, chains and routes of the network that reduces, or why there is none
//	buffers                       of a connection by LL, LL128 and Simple
//	route FROM TO CHANNEL [ring|tree|p2p|nvls|nvls-tree|collnet-direct|collnet-chain]
//	choose OP SIZE... [type=T] [op=R] [in=group]
//	dda all_to_all SIZE... [type=T]  whether RCCL's DDA does it
//	times OP SIZE [ALGO|PROTO]    of what is on, or of one algorithm or protocol, or why it is off
func Machines(t *testing.T) {
	Run(t, func() func(*testing.T, *datadriven.TestData) string {
		m := &machine{}
		return m.answer
	})
}

// machine is what a conversation is about.
type machine struct {
	spec *topo.Spec
	of   []fabric.Member
	comm *comm.Comm
	sys  *topo.System // of the first host, without what later ones are
	host *topo.Host
	err  error
	file string // of graphs
}

// commands that look at one host, and those that need the communicator.
var (
	ofHost = map[string]func(*machine, *datadriven.TestData) string{"nets": (*machine).nets,
		"log": (*machine).log, "paths": (*machine).paths, "peers": (*machine).peers,
		"direct": (*machine).direct, "refused": (*machine).refused, "local": (*machine).local}
	ofComm = map[string]func(*machine, *datadriven.TestData) string{"graph": (*machine).graph,
		"file": (*machine).graphs, "collnet": (*machine).collnet, "nvls": (*machine).nvls,
		"channels": (*machine).channels, "buffers": (*machine).buffers, "rings": (*machine).rings,
		"trees": (*machine).trees, "route": (*machine).route, "choose": (*machine).choose,
		"dda": (*machine).dda, "times": (*machine).times}
)

func (m *machine) answer(t *testing.T, d *datadriven.TestData) string {
	if d.Cmd == "hosts" {
		said, err := m.hosts(t, d)
		if err != nil {
			return "error: " + err.Error()
		}
		return said
	}
	if d.Cmd == "given" {
		m.file = d.Input
		return ""
	}
	if f := ofHost[d.Cmd]; f != nil && m.sys != nil {
		return f(m, d)
	}
	f := ofComm[d.Cmd]
	switch {
	case f == nil || m.sys == nil:
		d.Fatalf(t, "%s: %s: no such command, or no hosts before it", d.Pos, d.Cmd)
	case m.err != nil:
		return "error: " + m.err.Error()
	}
	return f(m, d)
}

func (m *machine) hosts(t *testing.T, d *datadriven.TestData) (string, error) {
	m.sys, m.comm, m.err = nil, nil, nil
	if err := m.read(t, d); err != nil {
		return "", err
	}
	r, err := rules.For(Value(d, "release", ""))
	if err != nil {
		return "", err
	}
	var set []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) > 0 && a.Key == strings.ToUpper(a.Key) {
			set = append(set, a.Key+"="+strings.ReplaceAll(strings.Join(a.Vals, ","), "+", " "))
		}
	}
	c, _, err := config.Load(config.Sources{Rules: r, Flags: set, NoEnv: true})
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(Value(d, "n", "1"))
	if err != nil {
		return "", err
	}
	of := fabric.Member{Spec: m.spec, Count: n}
	for _, k := range strings.Split(Value(d, "keep", ""), ",") {
		if local, err := strconv.Atoi(k); err == nil {
			of.Keep = append(of.Keep, local)
		}
	}
	if !(Word(d, 0) == "more" || Word(d, 1) == "more") {
		m.of = nil
	}
	m.of = append(m.of, of)
	cluster, err := fabric.New(m.of, c.Topo)
	if err != nil {
		return "", err
	}
	m.host = cluster.Host(0)
	if m.sys = m.host.Systems[0]; m.host.Whole != nil {
		m.sys = m.host.Whole
	}
	params := c.Comm()
	params.Multicast = map[string]comm.Multicast{"": comm.MulticastAuto, "on": comm.MulticastOn,
		"off": comm.MulticastOff}[Value(d, "multicast", "")]
	if file := m.file; file != "" {
		m.file = ""
		params.Given = func(s *topo.System) ([]*search.Graph, error) {
			return graphxml.Parse([]byte(file), "given", s)
		}
	}
	m.comm, m.err = comm.New(cluster, params)
	said := fmt.Sprintf("%d GPUs, %d CPUs, %d nets", len(m.sys.Of(topo.GPU)), len(m.sys.Of(topo.CPU)),
		len(m.sys.Of(topo.NET)))
	if n := len(m.sys.Of(topo.GIN)); n > 0 {
		said += fmt.Sprintf(", %d ports for GPUs", n)
	}
	return said, nil
}

// read takes the host of the lines, of a file by name, or the one before.
func (m *machine) read(t *testing.T, d *datadriven.TestData) error {
	text, err := XML(d.Input)
	name := "hosts" // not the place in the file, which moves with what is above it
	if file := Word(d, 0); file != "" && file != "more" {
		var data []byte
		name = file
		data, err = os.ReadFile(golden.Root(t, "testdata", "topos", file+".xml"))
		text = string(data)
	} else if d.Input == "" {
		return nil
	}
	if err != nil {
		return err
	}
	m.spec, err = topoxml.Parse([]byte(text), name)
	return err
}

func (m *machine) nets(*datadriven.TestData) string {
	var b strings.Builder
	for _, id := range m.sys.Of(topo.NET) {
		n := m.sys.Nodes[id].Net
		fmt.Fprintf(&b, "%s dev %d, %g GB/s", n.Name, n.Dev, n.BW)
		if len(n.Fused) > 0 {
			fmt.Fprintf(&b, ", %d ports", len(n.Fused))
		}
		if n.LatencyUs > 0 {
			fmt.Fprintf(&b, ", %g us", n.LatencyUs)
		}
		if n.LocalGPU >= 0 {
			fmt.Fprintf(&b, ", of GPU%d", n.LocalGPU)
		}
		if !n.GDR {
			b.WriteString(", no GPUDirect")
		}
		if n.Rail >= 0 || n.Plane >= 0 {
			fmt.Fprintf(&b, ", rail %d, plane %d", n.Rail, n.Plane)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (m *machine) log(*datadriven.TestData) string {
	return strings.ReplaceAll(strings.Join(show.Log(m.sys, 0), "\n"), " \n", "\n")
}

var kindsByWord = map[string]topo.NodeKind{"gpu": topo.GPU, "net": topo.NET, "cpu": topo.CPU,
	"switch": topo.NVS}

func (m *machine) paths(d *datadriven.TestData) string {
	var b strings.Builder
	s := m.sys
	for _, from := range s.Of(kindsByWord[Word(d, 0)]) {
		for _, to := range s.Of(kindsByWord[Word(d, 1)]) {
			if from == to {
				continue
			}
			p := s.Path(from, to)
			fmt.Fprintf(&b, "%s %s: %v %g GB/s", s.Short(from), s.Short(to), p.Kind, p.BW)
			var by []string
			for _, l := range p.Links {
				by = append(by, s.Short(s.Links[l].To))
			}
			if len(by) > 1 {
				fmt.Fprintf(&b, " by %s", strings.Join(by[:len(by)-1], " "))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func (m *machine) peers(*datadriven.TestData) string {
	var b strings.Builder
	gpus := m.sys.Of(topo.GPU)
	for _, from := range gpus {
		fmt.Fprintf(&b, "%s:", m.sys.Short(from))
		for _, by := range []string{"P2P", "SHM", ""} {
			word := " " + or(by, "network")
			for _, to := range gpus {
				if from != to && m.sys.Transport(from, to, &m.comm.Params.Access) == by {
					fmt.Fprintf(&b, "%s %s", word, m.sys.Short(to))
					word = ""
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (m *machine) direct(*datadriven.TestData) string {
	var b strings.Builder
	for _, g := range m.sys.Of(topo.GPU) {
		for _, n := range m.sys.Of(topo.NET) {
			fmt.Fprintf(&b, "%s %s:", m.sys.Short(g), m.sys.Short(n))
			for _, read := range []bool{true, false} {
				ok, why := m.sys.GDR(g, n, read, &m.comm.Params.Access)
				word := map[bool]string{true: " sends", false: " receives"}[read]
				if ok {
					b.WriteString(word)
				} else {
					fmt.Fprintf(&b, " no%s (%s)%s", word, why.Reason, m.sys.Rules.Aside(why.At))
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func (m *machine) refused(*datadriven.TestData) string {
	var b strings.Builder
	for _, v := range m.sys.Verdicts {
		fmt.Fprintf(&b, "%s %s %s: %s", v.What, m.sys.Short(v.From), m.sys.Short(v.To), v.Reason)
		if v.Setting != "" {
			fmt.Fprintf(&b, "; %s", v.Setting)
		}
		fmt.Fprintf(&b, "%s\n", m.sys.Rules.Aside(v.At))
	}
	return b.String()
}

func (m *machine) local(*datadriven.TestData) string {
	var b strings.Builder
	for g, id := range m.sys.Of(topo.GPU) {
		var names []string
		for _, n := range m.sys.LocalNets(g) {
			names = append(names, m.sys.Short(m.sys.Of(topo.NET)[n]))
		}
		fmt.Fprintf(&b, "%s: %s\n", m.sys.Short(id), strings.Join(names, " "))
	}
	return b.String()
}

var graphsByWord = map[string]int{"ring": search.RingID, "tree": search.TreeID, "nvls": search.NVLSID,
	"collnet-chain": search.CollNetChainID, "collnet-direct": search.CollNetDirectID}

func (m *machine) graph(d *datadriven.TestData) string {
	dom := &m.comm.Domains[0]
	g := dom.Graphs[graphsByWord[Word(d, 0)]]
	if g == nil || g.NChannels == 0 {
		return "none"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "pattern %d, %d channels of %g in, %g out, %v/%v", g.Pattern, g.NChannels, g.BWIntra,
		g.BWInter, g.TypeIntra, g.TypeInter)
	if g.CrossNIC > 0 {
		fmt.Fprintf(&b, ", cross %d", g.CrossNIC)
	}
	for c := range g.Intra {
		fmt.Fprintf(&b, "\n%s", strings.Trim(fmt.Sprint(g.Intra[c]), "[]"))
		if len(dom.System.Of(topo.NET)) > 0 && m.comm.NNodes > 1 {
			fmt.Fprintf(&b, ", nets %s %s", netOf(dom.System, g.Inter[c][0]),
				netOf(dom.System, g.Inter[c][1]))
		}
	}
	return b.String()
}

func (m *machine) graphs(*datadriven.TestData) string {
	d := &m.comm.Domains[0]
	text, err := graphxml.Write(d.System, d.Graphs)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(text)
}

func netOf(s *topo.System, ident uint64) string {
	for _, n := range s.Of(topo.NET) {
		if s.Nodes[n].Ident == ident {
			return s.Nodes[n].Net.Name
		}
	}
	return "none"
}

func (m *machine) channels(*datadriven.TestData) string {
	c := m.comm
	return fmt.Sprintf("%d, nvls %d, p2p %d, %d a peer, chunk %v", c.NChannels, c.NVLSChannels,
		c.P2PChannels, c.P2PChannelsPerPeer, c.P2PChunkSize)
}

func (m *machine) buffers(*datadriven.TestData) string {
	return strings.Trim(fmt.Sprint(m.comm.BuffSizes), "[]")
}

// each prints what channels have, equal ones in one line.
func (m *machine) each(of func(*connect.Channel) string) string {
	var b strings.Builder
	for i := 0; i < len(m.comm.Channels); {
		text, from := of(&m.comm.Channels[i]), i
		for ; i < len(m.comm.Channels) && of(&m.comm.Channels[i]) == text; i++ {
		}
		if i-from > 1 {
			fmt.Fprintf(&b, "%d-%d: %s\n", from, i-1, text)
		} else {
			fmt.Fprintf(&b, "%d: %s\n", from, text)
		}
	}
	return b.String()
}

func (m *machine) rings(*datadriven.TestData) string {
	return m.each(func(c *connect.Channel) string { return strings.Trim(fmt.Sprint(c.Order), "[]") })
}

func (m *machine) trees(*datadriven.TestData) string {
	return m.each(func(c *connect.Channel) string {
		var list []string
		for r, l := range c.Tree {
			down := slices.DeleteFunc(slices.Clone(l.Down[:]), func(x int32) bool { return x < 0 })
			list = append(list, fmt.Sprintf("%d<%d:%s", l.Up, r, strings.Trim(fmt.Sprint(down), "[]")))
		}
		return strings.Join(list, "  ")
	})
}

func (m *machine) route(d *datadriven.TestData) string {
	number := func(n int) int {
		v, _ := strconv.Atoi(Word(d, n))
		return v
	}
	kind := map[string]connect.RouteKind{"ring": connect.RingRoute, "tree": connect.TreeRoute,
		"p2p": connect.P2PRoute, "": connect.RingRoute, "nvls": connect.NVLSRoute,
		"nvls-tree": connect.NVLSTreeRoute, "collnet-direct": connect.CollNetDirectRoute,
		"collnet-chain": connect.CollNetChainRoute}[Word(d, 3)]
	r := m.comm.RouteOf(int32(number(0)), int32(number(1)), number(2), kind)
	if r.Transport != connect.NET {
		return []string{"P2P", "SHM"}[r.Transport]
	}
	name := func(net int32) string {
		if net < 0 {
			return "no net"
		}
		n := m.sys.Nodes[m.sys.Of(topo.NET)[net]].Net
		if m.sys.NHosts > 1 {
			return fmt.Sprintf("%s of host %d", n.Name, n.Host)
		}
		return n.Name
	}
	return fmt.Sprintf("NET %s by proxy of %d%s → %s by proxy of %d%s", name(r.SrcNet), r.SrcProxy,
		direct(r.SrcGDR), name(r.DstNet), r.DstProxy, direct(r.DstGDR))
}

func (m *machine) nvls(*datadriven.TestData) string {
	return fmt.Sprintf("channels %v, chunk %v, of the tree %v, at most %d", m.comm.NVLSCount,
		m.comm.NVLSChunkSize, m.comm.NVLSTreeChunk,
		m.comm.NVLSTreeLimit(m.comm.Params.Plan.NVLSTreeMaxChunk))
}

func (m *machine) collnet(*datadriven.TestData) string {
	n := &m.comm.CollNet
	if !n.Enabled {
		return n.Off
	}
	var b strings.Builder
	for node, heads := range n.Heads {
		fmt.Fprintf(&b, "host %d: heads %v, to the network %v\n", node, heads, n.NetHeads[node])
		for h, order := range n.Order[node] {
			fmt.Fprintf(&b, "  head %d takes %v\n", h, order)
		}
	}
	for ch, up := range n.ChainUp {
		fmt.Fprintf(&b, "chain %d: up %v, down %v\n", ch, up, n.ChainDown[ch])
	}
	fmt.Fprintf(&b, "chains of channels: %v\n", n.ChainOf)
	for _, r := range n.NetHeads[0] {
		s, d := m.comm.RouteOf(r, connect.Network, 0, connect.CollNetRoute),
			m.comm.RouteOf(connect.Network, r, 0, connect.CollNetRoute)
		fmt.Fprintf(&b, "%d sends by net %d%s, receives by net %d%s\n", r, s.SrcNet, direct(s.SrcGDR),
			d.DstNet,
			direct(d.DstGDR))
	}
	if m.comm.ChainHeadless() {
		b.WriteString("a chain begins at no head\n")
	}
	return b.String()
}

func direct(gdr bool) string {
	if gdr {
		return " direct"
	}
	return ""
}

// op reads the operation of a command, its size being of the buffer.
func (m *machine) op(d *datadriven.TestData, size string) (o tuning.Op, err error) {
	if o.Func, err = coll.ParseFunc(Word(d, 0)); err != nil {
		return o, err
	}
	if o.Type, err = coll.ParseDataType(Value(d, "type", "float")); err != nil {
		return o, err
	}
	if o.RedOp, err = coll.ParseRedOp(Value(d, "op", "sum")); err != nil {
		return o, err
	}
	bytes, err := units.ParseBytes(size)
	o.Count = int64(bytes / o.Type.Size())
	if o.Func == coll.AllGather || o.Func == coll.ReduceScatter || o.Func == coll.AllToAll {
		o.Count /= int64(m.comm.NRanks)
	}
	return o, err
}

func (m *machine) choose(d *datadriven.TestData) string {
	var b strings.Builder
	for i := 1; Word(d, i) != ""; i++ {
		o, err := m.op(d, Word(d, i))
		if err != nil {
			return "error: " + err.Error()
		}
		of := m.comm
		if Value(d, "in", "") == "group" {
			of = of.Grouped()
		}
		if c, err := of.Choose(o); err != nil {
			fmt.Fprintf(&b, "%s: error: %v\n", Word(d, i), err)
		} else {
			fmt.Fprintf(&b, "%s: %v %v, %d channels, %d threads%s\n", Word(d, i), c.Algo, c.Proto,
				c.MaxChannels, c.Threads, otherwise(&c))
		}
	}
	return b.String()
}

func (m *machine) dda(d *datadriven.TestData) string {
	var b strings.Builder
	for i := 1; Word(d, i) != ""; i++ {
		o, err := m.op(d, Word(d, i))
		if err != nil {
			return "error: " + err.Error()
		}
		fmt.Fprintf(&b, "%s: %t\n", Word(d, i), m.comm.Model.TakenByDDA(o))
	}
	return b.String()
}

// otherwise is what RCCL does beyond the least time.
func otherwise(c *tuning.Choice) string {
	s := ""
	if c.DDA {
		s += ", after DDA"
	}
	if c.Direct != "" {
		s += ", goes " + c.Direct
	}
	if c.Pipelined {
		s += ", pipelined"
	}
	if c.Overruled != nil {
		for _, r := range *c.Overruled {
			s += "; " + r.Rule
		}
	}
	return s
}

func (m *machine) times(d *datadriven.TestData) string {
	o, err := m.op(d, Word(d, 1))
	if err != nil {
		return "error: " + err.Error()
	}
	c, err := m.comm.Choose(o)
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	of := Word(d, 2)
	for a := range c.Times {
		for p, us := range c.Times[a] {
			algo, proto := coll.Algorithm(a), coll.Protocol(p)
			switch {
			case of != "" && of != algo.String() && of != proto.String():
			case us >= 0:
				fmt.Fprintf(&b, "%v %v: %.4g us\n", algo, proto, us)
			case of != "":
				for _, why := range m.comm.Model.WhyOff(o, algo, proto) {
					fmt.Fprintf(&b, "%v %v: off: %v\n", algo, proto, why.Rule)
				}
			}
		}
	}
	return b.String()
}

// Comm is the communicator of n equal hosts, which text gives line by line (XML), with settings K=V.
func Comm(t testing.TB, text string, n int, set ...string) *comm.Comm {
	t.Helper()
	xml, err := XML(text)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse([]byte(xml), "hosts.xml")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(config.Sources{Flags: set, NoEnv: true})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := fabric.NewUniform(spec, n, c.Topo)
	if err != nil {
		t.Fatal(err)
	}
	out, err := comm.New(cluster, c.Comm())
	if err != nil {
		t.Fatal(err)
	}
	return out
}
