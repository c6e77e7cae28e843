package diagnose

import (
	"fmt"
	"math"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
)

// candidate is a suspect before it is tried: an entry of a table.
type candidate struct {
	kind string
	what string // %s is the strength where it has one
	// assumes is how much the suspect supposes: -ln of its share in its kind, and more of a kind that needs
	// something else to be so. How likely kinds are by themselves common says.
	assumes float64
	// fitted is a change by a factor, which is found from the times.
	fitted bool
	change func(t *trial, factor float64) error
	prove  string
	remedy string
}

// Shares of one of two, three or four suspects in their kind.
const halved, third, quarter = 0.7, 1.1, 1.4

// curve names a change that several candidates have in common, as far as times show: it is simulated
// once. Between two nodes all traffic meets the NICs of each. Where nothing describes the network, of
// cables only what they leave to NICs is known. Empty: its own.
func (p *place) curve(c *candidate) string {
	if !c.fitted {
		return ""
	}
	switch c.kind {
	case "acs", "congestion", "mtu", "traffic-class", "channels":
		return everyNIC
	case "slow-node":
		if p.nodes == 2 {
			return everyNIC
		}
	case "link-slow", "hash-collision":
		if !p.fabric && strings.Contains(c.what, "every NIC") {
			return everyNIC
		}
		if !p.fabric {
			return oneNIC
		}
	case "nic-slow":
		if !strings.Contains(c.what, "middle") {
			return oneNIC
		}
	}
	return ""
}

// Changes that several candidates have in common.
const everyNIC, oneNIC = "every NIC", "one NIC"

// most is by how much longer a candidate can make times at most.
func (c *candidate) most() float64 {
	if c.kind == "mtu" { // headers take no more than a quarter
		return 1.35
	}
	return strongest
}

// density is how likely a factor is of a kind, to ln of it: of what is sold and built, where that is known to
// about blur, or any.
func (c *candidate) density(ln, blur float64) float64 {
	any := 1 / math.Log(c.most())
	switch {
	case c.kind == "hash-collision" && ln < math.Log(unluckiest):
		return 0.1*any + 0.9/math.Log(unluckiest)
	case c.kind == "hash-collision":
		return 0.1 * any
	case c.kind == "nic-slow" || c.kind == "slow-node": // links that come up at a half or a quarter
		return 0.7*any + 0.3*peaks(ln, blur, 2, 4)
	}
	return any
}

// unluckiest is what hashes of equal flows on as many cables leave at worst, nearly always: 1 of 9 draws of
// leaf-spine networks of 2 and 4 nodes of 8 NICs took more than 2.2 times as long, and none of 36 2.4.
const unluckiest = 2.5

// peaks is a density of logarithms around those of some factors.
func peaks(ln, blur float64, factors ...float64) (sum float64) {
	width := math.Hypot(blur, 0.05)
	for _, f := range factors {
		z := (ln - math.Log(f)) / width
		sum += math.Exp(-z*z/2) / (width * math.Sqrt(2*math.Pi) * float64(len(factors)))
	}
	return sum
}

// Concerns reports whether a suspect is about devices of a kind.
func (s *Suspect) Concerns(k topo.NodeKind) bool {
	switch s.Kind {
	case "late-rank", "launch", "channels", "setting", "release", "defect":
		return k == topo.GPU
	case "pcie", "acs", "virtualised":
		return k == topo.PCI
	case "nvls-off", "p2p-pcie":
		return k == topo.NVS || k == topo.GPU
	case "numa", "shm", "host-memory":
		return k == topo.CPU
	}
	return k == topo.NET
}

// place is what a machine has, for the conditions of candidates.
type place struct {
	nodes, gpus       int
	nics              []string // in use
	all               []string // of a node, in the order of its file
	there             int      // GPUs of a node, of which gpus are used
	nvlink, nvls, c2c bool
	fabric, p2p       bool
	version           string
}

func placeOf(b *bench) place {
	site := b.run.Site
	sys := site.Cluster.Host(0).Systems[0]
	p := place{nodes: site.Comm.NNodes, gpus: site.Comm.NRanks / max(site.Comm.NNodes, 1), nics: b.nics(),
		fabric: site.Network != nil, p2p: b.table.fn.IsP2P(), version: site.Config.Rules.Version()}
	xml := string(b.xml())
	p.nvlink, p.c2c = strings.Contains(xml, "<nvlink"), strings.Contains(xml, "<c2c")
	p.nvls = len(sys.Of(topo.NVS)) > 0
	for _, m := range nets().FindAllStringSubmatch(xml, -1) {
		p.all = append(p.all, m[1])
	}
	p.there = strings.Count(xml, "<gpu ")
	return p
}

// xml is the topology file of the first node.
func (b *bench) xml() []byte {
	opt := b.opt
	opt.Warn = nil
	name := ""
	if len(b.spec.Machine.Nodes) > 0 {
		name = b.spec.Machine.Nodes[0].Topo
	}
	if name == "" {
		name = "dgx-h100"
	}
	f, err := opt.ReadTopology(name)
	if err != nil {
		return nil
	}
	return f.Data
}

func setting(kv ...string) func(*trial, float64) error {
	return func(t *trial, _ float64) error {
		t.env(kv...)
		return nil
	}
}

// candidates are all suspects that a machine may have, and settings that a log shows.
func candidates(p *place, left []string) (out []candidate) {
	for _, kv := range left {
		out = append(out, ofSetting(kv, 0))
	}
	if p.nodes > 1 && len(p.nics) > 0 {
		out = append(append(out, nics(p)...), p.flows()...)
		if p.fabric {
			out = append(out, wires()...)
		} else {
			out = append(out, p.unseen()...)
		}
	}
	out = append(out, inside(p)...)
	return append(out, settings(p)...)
}

// slowNICs slows the NICs of all nodes down.
func (p *place) slowNICs(t *trial, f float64) error {
	for n := range p.nodes {
		for i := range p.nics {
			t.fault("nic=node%d/%d:slow=%g", n, i, f)
		}
	}
	return nil
}

// flows are suspects of what goes between two GPUs of different nodes by itself: a connection of few channels
// or queue pairs does not fill a NIC.
func (p *place) flows() []candidate {
	if !p.p2p {
		return nil
	}
	return []candidate{
		{"channels", "too few channels or queue pairs for a peer: what goes between two GPUs has " +
			"1/%s of the rate of a NIC", 1, true, p.slowNICs,
			"NCCL_DEBUG=INFO: \"p2p channels per peer\"; the table with NCCL_NCHANNELS_PER_NET_PEER=4",
			"NCCL_NCHANNELS_PER_NET_PEER=4, NCCL_IB_QPS_PER_CONNECTION=4 with NCCL_IB_SPLIT_DATA_ON_QPS=1"}}
}

// nics are suspects of what lies between GPU and network.
func nics(p *place) []candidate {
	out := append(append(rates(p), narrow("NICs and GPUs", third)...), paths(p)...)
	return append(out, missing(p)...)
}

// What proves and repairs a slow NIC.
const (
	proveNIC  = "ib_write_bw --report_gbits between two nodes, for each NIC of each node (-d); ibstat"
	repairNIC = "reseat or replace cable and transceiver of the NIC that lags; check rate and width in " +
		"ibstat, symbol errors in ethtool -S or perfquery"
)

const (
	proveNode  = "the same table on pairs of nodes: every pair with the slow node is slow"
	repairNode = "take the node out; compare its BIOS, PCIe settings and firmware with its neighbours'"
)

func (p *place) slowNode(node int) func(t *trial, f float64) error {
	return func(t *trial, f float64) error {
		for i := range p.nics {
			t.fault("nic=node%d/%d:slow=%g", node, i, f)
		}
		return nil
	}
}

// rates are NICs that have a part of their rate.
func rates(p *place) []candidate {
	return []candidate{
		{"nic-slow", "one NIC has 1/%s of its rate", halved, true, slowNIC, proveNIC, repairNIC},
		// Where a tree has it, it matters which.
		{"nic-slow", "one NIC, of a node in the middle, has 1/%s of its rate", halved, true,
			func(t *trial, f float64) error {
				t.fault("nic=node%d/%d:slow=%g", p.nodes/2, len(p.nics)/2, f)
				return nil
			}, proveNIC, repairNIC},
		{"slow-node", "all NICs of one node have 1/%s of their rate", halved, true, p.slowNode(0), proveNode,
			repairNode},
		{"slow-node", "all NICs of one node in the middle have 1/%s of their rate", halved, true,
			p.slowNode(p.nodes / 2), proveNode, repairNode},
		{"acs", "ACS sends what goes between NIC and GPU through the CPU: 1/%s of the rate of all NICs", 1,
			true, p.slowNICs, "lspci -vvv | grep ACSCtl: SrcValid+ on a bridge is ACS",
			"disable ACS on bridges (setpci -s BRIDGE ECAP_ACS+0x6.w=0000, BIOS), or use ATS in virtual " +
				"machines"},
		{"congestion", "traffic of others leaves 1/%s of the rate of all NICs", 0, true, p.slowNICs,
			"repeat the table when the network is idle, and compare; counters of paused frames and ECN " +
				"marks on the " +
				"switches", "separate jobs by rails or leaves; tune ECN and PFC; adaptive routing"},
		{"mtu", "small frames: headers leave 1/%s of the rate of all NICs", 2.2, true,
			p.slowNICs, "ip link; ibv_devinfo | grep mtu: active_mtu 4096, of interfaces 9000",
			"set MTU 9000 on interfaces and switches, so that RoCE has 4096"},
		{"traffic-class", "RoCE is in a traffic class that switches drop or hold back: 1/%s of the rate of " +
			"all NICs", 2.2, true, p.slowNICs,
			"mlnx_qos -i INTERFACE: the priority that PFC is on; NCCL_IB_TC and " +
				"/sys/class/infiniband/DEVICE/tc/1/traffic_class: the class that is used; ethtool -S: " +
				"discards and pauses by priority",
			"NCCL_IB_TC and NCCL_IB_FIFO_TC as the network's class, 106 for DSCP 26"},
	}
}

func slowNIC(t *trial, f float64) error {
	t.fault("nic=node0/0:slow=%g", f)
	return nil
}

// narrow are PCIe links of fewer lanes than 16, or of an older generation with as much less.
func narrow(what string, assumes float64) (out []candidate) {
	for _, n := range []int{8, 4, 2} {
		out = append(out, candidate{"pcie", fmt.Sprintf("the PCIe links of %s have %d of 16 lanes, or a "+
			"rate that is as much lower", what, n), assumes, false,
			func(t *trial, _ float64) error { return t.topology(lanes(n)) },
			"lspci -vv | grep -E 'LnkCap|LnkSta': width and speed of every NIC, GPU and switch; " +
				"nvidia-smi -q | grep -A4 'Link Width'",
			"reseat the card or riser; set link speed and bifurcation in the BIOS"})
	}
	return out
}

// paths are other ways between GPU and network than NCCL should take.
func paths(*place) []candidate {
	return []candidate{
		{"no-gpudirect", "no GPUDirect RDMA: data between GPU and NIC goes through host memory", 0, false,
			setting("NCCL_NET_GDR_LEVEL=LOC", "NCCL_NET_GDR_C2C=0"),
			"NCCL_DEBUG=INFO: lines with GDRDMA on " +
				"\"via NET\"; lsmod | grep nvidia_peermem; dmesg",
			"modprobe nvidia_peermem, or a kernel and driver with DMA-BUF; NCCL_NET_GDR_LEVEL unset; in " +
				"virtual " +
				"machines ATS and a topology file"},
		{"wrong-transport", "TCP in place of RDMA", 0, false, setting("NCCL_IB_DISABLE=1"),
			"NCCL_DEBUG=INFO: \"Using network Socket\" in place of IB",
			"install rdma-core and the network's plugin in the container, give it /dev/infiniband; unset " +
				"NCCL_IB_DISABLE and NCCL_NET; NCCL_IB_HCA must name devices that exist"},
		{"virtualised", "a virtual machine hides PCIe switches: GPUs and NICs seem to hang on the CPU", 1,
			false,
			func(t *trial, _ float64) error { return t.topology(flat) },
			"nvidia-smi topo -m: PHB or SYS where PIX or PXB should be",
			"give NCCL the real topology: NCCL_TOPO_FILE, from the cloud's image"},
	}
}

const (
	proveHCA  = "NCCL_DEBUG=INFO: the devices in the line \"NET/IB : Using\""
	repairHCA = "unset NCCL_IB_HCA or name every compute NIC; give the container all of /dev/infiniband"
)

// missing are NICs that are not used.
func missing(p *place) (out []candidate) {
	for _, n := range []int{1, 2, 3} {
		for _, node := range []int{0, p.nodes / 2} {
			if n >= len(p.nics) || n > 1 && node > 0 {
				continue
			}
			out = append(out, candidate{"nic-down", fmt.Sprintf("%d of %d NICs of node %d are not there", n,
				len(p.nics), node), 0.5 + 0.7*float64(n), false, func(t *trial, _ float64) error {
				for i := range n {
					at := i
					if node > 0 {
						at = len(p.nics) / 2
					}
					t.fault("nic=node%d/%s:absent", node, p.nics[at])
				}
				return nil
			}, "ibstat on every node: State Active, Physical state LinkUp for each NIC",
				"bring the port up: cable, switch port, subnet manager; ip link set up for RoCE"})
		}
	}
	out = append(out, p.wrong()...)
	if far := p.far(); len(far) > 0 {
		out = append(out, candidate{"numa", "the NICs in use are at the other CPU than the GPUs", 1, false,
			func(t *trial, _ float64) error {
				t.only(p.all, far)
				return nil
			},
			unsimulated["numa"].prove, unsimulated["numa"].remedy})
	}
	return out
}

// wrong are NICs that NCCL should not use, or not alone: some of a node's, one of another rate, or names that
// are not as many NICs.
func (p *place) wrong() (out []candidate) {
	add := func(what string, fitted bool, change func(*trial, float64) error, prove, remedy string) {
		out = append(out, candidate{"wrong-hca", what, 0, fitted, change, prove, remedy})
	}
	for n := 1; n < len(p.nics); n *= 2 {
		add(fmt.Sprintf("NCCL uses %d of %d NICs of each node", n, len(p.nics)), false,
			func(t *trial, _ float64) error {
				for _, name := range p.nics[n:] { // of any plugin, also those that NCCL_IB_HCA does not reach
					t.fault("nic=%s:absent", name)
				}
				return nil
			}, proveHCA, repairHCA)
	}
	for n := 2; n <= len(p.nics) && len(p.nics)%n == 0; n *= 2 {
		add(fmt.Sprintf("the %d HCAs of each node that NCCL uses are ports or virtual functions of %d NICs, "+
			"whose rate they share", len(p.nics), len(p.nics)/n), false,
			func(t *trial, _ float64) error { return p.slowNICs(t, float64(n)) },
			"readlink /sys/class/infiniband/*/device on a node, in the container: HCAs of one PCI device or "+
				"card", "give the job HCAs of as many cards: physical functions, one port of each; name "+
				"them in NCCL_IB_HCA")
	}
	add("NCCL uses one NIC of each node, of 1/%s of the rate of the others: one for storage or management",
		true, func(t *trial, f float64) error {
			for _, name := range p.nics[1:] {
				t.fault("nic=%s:absent", name)
			}
			for n := range p.nodes {
				t.fault("nic=node%d/0:slow=%g", n, f)
			}
			return nil
		}, proveHCA, repairHCA)
	for i := range out {
		out[i].assumes = math.Log(float64(len(out)))
	}
	return out
}

// far are the NICs at the other CPU than the GPUs in use, as many as are in use; nil where GPUs at both are.
func (p *place) far() []string {
	half := p.all[len(p.all)-len(p.all)/2:]
	if 2*p.gpus > p.there || len(half) == 0 {
		return nil
	}
	return half[:min(len(half), len(p.nics))]
}

// between switches.
func tiers(n *fabric.Network, f func(c *fabric.Cable)) {
	for i := range n.Cables {
		if c := &n.Cables[i]; !strings.Contains(c.A, "/") && !strings.Contains(c.B, "/") {
			f(c)
		}
	}
}

// What proves and repairs faults of cables.
const (
	proveLink  = "counters and rate of every port of the switches (iblinkinfo; ethtool on RoCE switches)"
	repairLink = "replace the cable or transceiver; take the port out until then"
	proveOver  = "the same table on nodes of one leaf: it is as fast as expected; simccl topo fabric show"
	repairOver = "place the job within leaves (simccl topo fabric place), or add uplinks"
	proveHash  = "repeat: times differ from run to run; NCCL_IB_QPS_PER_CONNECTION=4 changes them"
	repairHash = "adaptive routing, or NCCL_IB_QPS_PER_CONNECTION=4 NCCL_IB_SPLIT_DATA_ON_QPS=1"
)

// unseen are suspects of a network that nothing describes: what its cables leave to NICs. That there is
// more than one switch is assumed as well.
func (p *place) unseen() []candidate {
	const tier = 0.5
	out := []candidate{
		{"link-slow", "one cable between switches has 1/%s of the rate of a NIC", tier + 1, true, slowNIC,
			proveLink, repairLink},
		{"hash-collision", "queue pairs share cables by an unlucky hash of their routes: to a NIC's flow " +
			"1/%s of its rate is left", tier + halved, true, slowNIC, proveHash, repairHash},
		// Many flows, or every step of a ring that waits for the unluckiest.
		{"hash-collision",
			"queue pairs share cables by an unlucky hash of their routes: to the flows of every " +
				"NIC 1/%s of its rate is left", tier + halved, true, p.slowNICs, proveHash, repairHash},
	}
	for _, f := range []float64{2, 3, 4} {
		out = append(out, candidate{"oversubscription", fmt.Sprintf("leaves have %g times the rate to hosts "+
			"that they have upwards", f), tier + third, false,
			func(t *trial, _ float64) error { return t.leaves(p.nodes, f) }, proveOver, repairOver})
	}
	return out
}

// wires are suspects of a network that is described.
func wires() []candidate {
	out := []candidate{
		{"link-slow", "one cable between switches has 1/%s of its rate", 0, true,
			func(t *trial, f float64) error {
				first := true
				return t.network(func(n *fabric.Network) {
					tiers(n, func(c *fabric.Cable) {
						if first {
							c.Gbit /= f
						}
						first = false
					})
				})
			}, proveLink, repairLink},
		{"oversubscription", "leaves have %s times the rate to hosts that they have upwards", 1.5, true,
			func(t *trial, f float64) error {
				return t.network(func(n *fabric.Network) { tiers(n, func(c *fabric.Cable) { c.Gbit /= f }) })
			}, proveOver, repairOver},
		{"routing", "static routes share cables where adaptive routing would not", 1, false,
			func(t *trial, _ float64) error {
				return t.network(func(n *fabric.Network) { n.Routing = fabric.Static })
			}, "whether the switches route adaptively (SHIELD/AR of the subnet manager; DLB on Ethernet)",
			"turn adaptive routing on, and NCCL_IB_ADAPTIVE_ROUTING=1"},
	}
	for seed := range uint64(3) { // draws: the one that fits best is reported
		out = append(out, candidate{"hash-collision",
			"queue pairs share cables by an unlucky hash of their routes, as in draw " + fmt.Sprint(seed+1),
			third + 0.3, false, func(t *trial, _ float64) error {
				t.spec.Seed = seed + 1
				return t.network(func(n *fabric.Network) { n.Routing = fabric.ECMP })
			}, proveHash, repairHash})
	}
	return out
}

// inside are suspects of a node.
func inside(p *place) []candidate {
	var out []candidate
	if p.gpus*p.nodes > 1 {
		out = append(out, candidate{"late-rank", "one rank takes %s times as long for all it does", 0, true,
			func(t *trial, f float64) error {
				t.fault("rank=0:slow=%g", f)
				return nil
			}, "nvidia-smi -q -d CLOCK,PERFORMANCE on every GPU; NCCL_TESTS with each GPU left out in turn",
			"cool or power the GPU that throttles, or take it out; bind each rank to cores of its own"})
	}
	if p.nvls {
		out = append(out, candidate{"nvls-off", "NVLS is off: no reduction in the NVSwitches", 0, false,
			setting("NCCL_NVLS_ENABLE=0"), "NCCL_DEBUG=INFO: \"NVLS multicast support is available\"; " +
				"NVLS comm lines",
			"start nvidia-fabricmanager or IMEX; unset NCCL_NVLS_ENABLE; in containers allow " +
				"multicast handles (CUDA 12.1 and driver 530 at least)"})
	}
	if p.gpus > 1 {
		out = append(out, candidate{"shm", "GPUs of a node exchange through shared host memory", 0, false,
			setting("NCCL_P2P_DISABLE=1"), "NCCL_DEBUG=INFO: \"via SHM\" in place of \"via P2P\"; " +
				"nvidia-smi topo -p2p r",
			"unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; disable IOMMU or ACS, allow " +
				"P2P in the virtual machine"})
	}
	if p.gpus > 1 && p.nvlink {
		out = append(out, candidate{"p2p-pcie", "GPUs of a node reach each other over PCIe, not NVLink", 0.5,
			false,
			func(t *trial, _ float64) error { return t.topology(withoutNVLinks) },
			"nvidia-smi topo -m: NV18 between GPUs; nvidia-smi nvlink -s",
			"start nvidia-fabricmanager; reset GPUs whose NVLinks are down; check the bridge"})
	}
	if p.nodes == 1 && p.gpus > 1 && !p.nvlink {
		out = append(append(out, narrow("GPUs", third)...),
			candidate{"acs", "ACS sends what GPUs exchange through the CPU", 1, false,
				func(t *trial, _ float64) error { return t.topology(flat) },
				"lspci -vvv | grep ACSCtl", "disable ACS on bridges, or the IOMMU"})
	}
	out = append(out, candidate{"launch", "one process and one thread launch for all GPUs of a node", 0,
		false,
		func(t *trial, _ float64) error {
			t.spec.Engine.Processes, t.spec.Engine.Threads = 1, 1
			return nil
		}, "the same table with a process a GPU (mpirun, -g 1), or with -G 1",
		"a process a GPU; CUDA graphs; bind ranks to cores (NCCL_IGNORE_CPU_AFFINITY unset)"})
	return out
}

// leftOver is what a setting that is left over in an environment is called as a suspect.
func leftOver(kv string) (kind string) {
	name, value, _ := strings.Cut(kv, "=")
	for _, o := range []struct{ part, kind string }{
		{"GDR", "no-gpudirect"}, {"P2P_DISABLE", "shm"}, {"P2P_LEVEL", "shm"}, {"SHM_", "shm"},
		{"NVLS", "nvls-off"},
		{"PXN", "pxn"}, {"IB_HCA", "wrong-hca"}, {"IB_DISABLE", "wrong-transport"},
		{"NCCL_NET", "wrong-transport"},
		{"IB_QPS", "qp"}, {"IB_SPLIT", "qp"}, {"NCHANNELS", "channels"}, {"CTAS", "channels"},
		{"RINGS", "channels"},
		{"TOPO_FILE", "topology"}, {"CROSS_NIC", "routing"}, {"IB_TC", "congestion"},
	} {
		if strings.Contains(name, o.part) && (o.part != "NCCL_NET" || name == "NCCL_NET" &&
			value == "Socket") {
			return o.kind
		}
	}
	return "setting"
}

// settings are variables that are met where no user meant them, and other releases.
func settings(p *place) (out []candidate) {
	var list []string
	if !p.p2p {
		for _, a := range []coll.Algorithm{coll.Ring, coll.Tree} {
			list = append(list, "NCCL_ALGO="+a.String())
		}
		list = append(list, "NCCL_PROTO=LL", "NCCL_PROTO=LL128", "NCCL_PROTO=Simple", "NCCL_MAX_NCHANNELS=1",
			"NCCL_MAX_NCHANNELS=2", "NCCL_MAX_NCHANNELS=4", "NCCL_MAX_NCHANNELS=8")
	} else {
		list = append(list, "NCCL_MAX_P2P_NCHANNELS=1", "NCCL_MAX_P2P_NCHANNELS=2",
			"NCCL_MAX_P2P_NCHANNELS=4",
			"NCCL_NCHANNELS_PER_NET_PEER=1", "NCCL_PROTO=LL")
	}
	list = append(list, "NCCL_BUFFSIZE=65536", "NCCL_BUFFSIZE=524288", "NCCL_NTHREADS=64")
	if p.nodes > 1 {
		list = append(list, "NCCL_PXN_DISABLE=1", "NCCL_IB_QPS_PER_CONNECTION=16")
	}
	for _, kv := range list {
		c := ofSetting(kv, quarter)
		if c.kind == "setting" {
			c.assumes++ // one of many that it might be
		}
		out = append(out, c)
	}
	for _, v := range []string{"2.21.5", "2.23.4", "2.25.1", "2.27.5", "2.28.9", "2.29.7"} {
		if _, err := rules.For(v); err == nil && v != p.version {
			out = append(out, candidate{"release", "NCCL " + v + " runs in place of " + p.version,
				quarter + 1.2,
				false,
				func(t *trial, _ float64) error {
					t.spec.NCCL.Version = v
					return nil
				}, "NCCL_DEBUG=VERSION; python -c 'import torch; print(torch.cuda.nccl.version())'; ldd",
				"LD_LIBRARY_PATH and the container's libnccl.so.2: one release on all nodes"})
		}
	}
	return out
}

// ofSetting is a setting that is left over.
func ofSetting(kv string, assumes float64) candidate {
	name, _, _ := strings.Cut(kv, "=")
	return candidate{leftOver(kv), kv + " is left over in the environment", assumes, false, setting(kv),
		"env | grep NCCL_ in the ranks; /etc/nccl.conf and ~/.nccl.conf; NCCL_DEBUG=INFO: \"" + name +
			" set by environment\"", "unset " + name}
}
