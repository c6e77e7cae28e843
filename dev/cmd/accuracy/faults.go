package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing/fstest"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/diagnose"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
)

// judgeMachines are those that faults are made on: of every kind of node, with 1 to 4 of them.
var judgeMachines = [...]string{
	"dgx-h100",
	"dgx-a100",
	"dgx-b200",
	"hgx-a100-4",
	"pcie-l40s-8",
	"oci-bm.gpu.h100.8",
	"gcp-a3-ultra",
	"dgx-1v",
	"azure-nd96asr-v4",
	"hgx-h100-4",
}

// fault changes a machine. It returns false where the machine cannot have it.
type fault struct {
	kind string
	make func(m *made) bool
}

// made is a machine in which a fault is made.
type made struct {
	spec  scenario.Spec // what is measured
	said  scenario.Spec // what is known of it
	file  fstest.MapFS
	rnd   *rand.Rand
	nics  []string
	gpus  int
	nvls  bool
	nodes int
}

func (m *made) fault(format string, args ...any) bool {
	m.spec.Network.Faults = append(m.spec.Network.Faults, fmt.Sprintf(format, args...))
	return true
}

func (m *made) env(kv string) bool {
	k, v, _ := strings.Cut(kv, "=")
	m.spec.NCCL.Env = map[string]string{k: v}
	return true
}

// factor is between 2 and 6.
func (m *made) factor() float64 { return math.Round(10*(2+4*m.rnd.Float64())) / 10 }

func one[T any](m *made, list ...T) T { return list[m.rnd.IntN(len(list))] }

// far reports whether the machine has several nodes and NICs between them.
func (m *made) far() bool { return m.nodes > 1 && len(m.nics) > 0 }

// among are the faults that the simulator makes, with its own options.
var among = [...]fault{
	{"nic-slow", func(m *made) bool {
		return m.far() &&
			m.fault("nic=node%d/%d:slow=%g", m.rnd.IntN(m.nodes), m.rnd.IntN(len(m.nics)), m.factor())
	}},
	{"nic-down", func(m *made) bool {
		return m.far() && len(m.nics) > 1 && m.fault("nic=node%d/%d:absent", m.rnd.IntN(m.nodes),
			m.rnd.IntN(len(m.nics)))
	}},
	{"slow-node", func(m *made) bool {
		f, n := m.factor(), m.rnd.IntN(m.nodes)
		for i := range m.nics {
			m.fault("nic=node%d/%d:slow=%g", n, i, f)
		}
		return m.far() && len(m.nics) > 1
	}},
	{"congestion", func(m *made) bool {
		f := m.factor()
		for n := range m.nodes {
			for i := range m.nics {
				m.fault("nic=node%d/%d:slow=%g", n, i, f)
			}
		}
		return m.far()
	}},
	{"late-rank", func(m *made) bool {
		return m.gpus > 1 && m.fault("rank=%d:slow=%g", m.rnd.IntN(m.nodes*m.gpus), m.factor())
	}},
	{"wrong-hca", func(m *made) bool {
		n := len(m.nics)
		return m.far() && n > 1 &&
			m.env("NCCL_IB_HCA=="+strings.Join(m.nics[:max(1, n>>(1+m.rnd.IntN(3)))], ","))
	}},
	{"no-gpudirect", func(m *made) bool { return m.far() && m.env("NCCL_NET_GDR_LEVEL=LOC") }},
	{"wrong-transport", func(m *made) bool { return m.far() && m.env("NCCL_IB_DISABLE=1") }},
	{"pxn", func(m *made) bool { return m.far() && m.env("NCCL_PXN_DISABLE=1") }},
	{"qp", func(m *made) bool { return m.far() && m.env("NCCL_IB_QPS_PER_CONNECTION=16") }},
	{"nvls-off", func(m *made) bool { return m.nvls && m.env("NCCL_NVLS_ENABLE=0") }},
	{"shm", func(m *made) bool { return m.gpus > 1 && m.env("NCCL_P2P_DISABLE=1") }},
	{"channels", func(m *made) bool { return m.env(fmt.Sprintf("NCCL_MAX_NCHANNELS=%d", one(m, 1, 2, 4))) }},
	{"setting", func(m *made) bool {
		return m.env(one(m, "NCCL_PROTO=LL", "NCCL_PROTO=Simple", "NCCL_ALGO=Ring", "NCCL_ALGO=Tree",
			"NCCL_BUFFSIZE=65536"))
	}},
	{
		"release",
		func(m *made) bool { m.spec.NCCL.Version = one(m, "2.21.5", "2.23.4", "2.25.1"); return true },
	},
	{"launch", func(m *made) bool { m.spec.Engine.Processes = 1; return m.gpus > 1 }},
	{"pcie", func(m *made) bool {
		return m.topology(`link_width="16"`, fmt.Sprintf(`link_width="%d"`, one(m, 2, 4, 8)))
	}},
	{"p2p-pcie", func(m *made) bool { return m.gpus > 1 && m.topology("<nvlink ", "<nolink ") }},
	{"link-slow", func(m *made) bool {
		return m.network(fabric.Layout{Oversub: 1, Routing: fabric.Adaptive}) &&
			m.fault("link=leaf0~spine0:slow=%g", m.factor())
	}},
	{"oversubscription", func(m *made) bool {
		return m.network(fabric.Layout{Oversub: one(m, 2.0, 4.0), Routing: fabric.Adaptive}) && m.unknown()
	}},
	{"hash-collision", func(m *made) bool {
		m.spec.Seed = 1 + m.rnd.Uint64N(100)
		return m.network(fabric.Layout{Oversub: 1, Routing: fabric.ECMP}) && m.unknown()
	}},
}

// topology has the nodes' file changed.
func (m *made) topology(old, text string) bool {
	opt := scenario.Options{}
	f, err := opt.ReadTopology(m.spec.Machine.Nodes[0].Topo)
	if err != nil || !strings.Contains(string(f.Data), old) {
		return false
	}
	m.file = fstest.MapFS{"made.xml": {Data: []byte(strings.ReplaceAll(string(f.Data), old, text))}}
	m.spec.Network.Class = "infiniband"
	m.spec.Machine.Nodes[0].Topo = "made.xml"
	return true
}

// network joins the nodes by leaves of their own; it is known.
func (m *made) network(l fabric.Layout) bool {
	if !m.far() {
		return false
	}
	l.Kind, l.Hosts, l.Nets, l.PerLeaf, l.Gbit = "leaf-spine", m.nodes, len(m.nics), 1, 400
	n, err := fabric.Generate(l)
	if err != nil {
		return false
	}
	m.file = fstest.MapFS{"made.json": {Data: n.Format()}}
	m.spec.Network.Fabric, m.said.Network.Fabric = "made.json", "made.json"
	return true
}

// unknown leaves the network out of what is said.
func (m *made) unknown() bool {
	m.said.Network.Fabric = ""
	return true
}

// faults are the cases of every fault on so many machines, and three times as many without one.
func faults(from, draws int) (out []trial) {
	for i := range among {
		f := &among[i]
		for d := from; d < from+draws; d++ {
			name := fmt.Sprintf("%s/%d", f.kind, d)
			out = append(out, trial{name: name, group: f.kind, kinds: []string{f.kind},
				make: func() (diagnose.Request, error) { return request(name, f) }})
		}
	}
	for d := 3 * from; d < 3*(from+draws); d++ {
		name := fmt.Sprintf("none/%d", d)
		out = append(out, trial{name: name, group: "none", verdict: diagnose.AsExpected, none: true,
			make: func() (diagnose.Request, error) { return request(name, nil) }})
	}
	return out
}

// felt is the least effect on some size that a fault is asked for, twice the noise of two tables.
const felt, noise = 0.2, 0.05

// request draws machines by name until the fault is felt on one.
func request(name string, f *fault) (diagnose.Request, error) {
	var seed uint64
	for _, c := range []byte(name) {
		seed = seed*131 + uint64(c)
	}
	rnd := rand.New(rand.NewPCG(seed, 49))
	for range 12 {
		m, op, err := draw(rnd)
		if err != nil {
			return diagnose.Request{}, err
		}
		m.said = m.spec.Clone()
		if f != nil && !f.make(m) {
			continue
		}
		opt := scenario.Options{Files: m.file, Settings: config.Sources{NoEnv: true}}
		good, err := times(m.said, op, opt)
		if err != nil {
			return diagnose.Request{}, err
		}
		bad, err := times(m.spec, op, opt)
		if err != nil {
			continue
		}
		most := 0.0
		for i := range good {
			most = max(most, math.Abs(math.Log(bad[i].Us/good[i].Us)))
			bad[i].Us *= 1 + noise*rnd.NormFloat64()
		}
		if f != nil && most < felt {
			continue
		}
		data, err := json.Marshal(
			document{"name": name, "collective": op, "rows": bad, "nccl_version": "2.28.9",
				"system": map[string]any{"nodes": m.nodes, "gpus_per_node": m.gpus}},
		)
		return diagnose.Request{Files: []diagnose.File{{Name: "table.json", Data: data}}, Spec: m.said,
			Options: opt}, err
	}
	return diagnose.Request{}, fmt.Errorf("the fault was felt on no machine that was drawn")
}

// draw draws a machine and an operation.
func draw(rnd *rand.Rand) (*made, string, error) {
	m := &made{rnd: rnd, nodes: 1 + rnd.IntN(4)}
	m.spec = machine(judgeMachines[rnd.IntN(len(judgeMachines))], m.nodes, 0)
	if rnd.IntN(3) == 0 {
		m.spec.Machine.GPUs = 2
	}
	op := []string{"all_reduce", "all_reduce", "all_gather", "reduce_scatter", "alltoall"}[rnd.IntN(5)]
	site, err := scenario.Load(&m.spec, scenario.Options{Settings: config.Sources{NoEnv: true}})
	if err != nil {
		return nil, "", err
	}
	sys := site.Cluster.Host(0).Systems[0]
	for _, id := range sys.Of(topo.NET) {
		m.nics = append(m.nics, sys.Nodes[id].Net.Name)
	}
	m.gpus, m.nvls = site.Comm.NRanks/m.nodes, len(sys.Of(topo.NVS)) > 0
	return m, op, nil
}

// times simulates a table.
func times(spec scenario.Spec, op string, opt scenario.Options) (out []judgePoint, err error) {
	spec.Workload = scenario.Workload{Op: op, Sizes: []string{"1K", "16K", "128K", "1M", "4M", "16M", "64M",
		"256M"}}
	spec.Engine.NoProof = true
	r, err := scenario.Run(context.Background(), spec, opt)
	if err != nil {
		return nil, err
	}
	for i := range r.Rows {
		out = append(out, judgePoint{Bytes: int64(r.Rows[i].Bytes), Us: r.Rows[i].Out.Time.Micros()})
	}
	return out, nil
}
