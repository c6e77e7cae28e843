package advise

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo/fabric"
)

// kind groups mutually exclusive settings: at most one of a kind is advised.
type kind int

// Kinds.
const (
	choice   kind = iota // algorithm and protocol
	channels             // channels and CTAs
	threads              // of a block
	buffers              // buffers and chunks
	multicast
	relays   // PXN, cross-NIC
	nics     // queue pairs, sockets, GPUDirect
	switches // how they choose routes
	kernels  // in place of NCCL's over plain buffers
	own      // settings of the user
	numKinds
)

// one returns a setting of a single variable.
func one(k kind, name string, value any) Setting {
	return Setting{Env: [][2]string{{name, fmt.Sprint(value)}}, kind: k}
}

func risky(s Setting, risk string) Setting { s.Risk = risk; return s }

// Try returns a setting that a user asks for, NAME=value.
func Try(name, value string) Setting { return one(own, name, value) }

// candidates returns the settings that are tried on a machine, the simpler ones first.
func (q *Request) candidates(site *scenario.Site, base *trial) []Setting {
	p2p, spec := false, &q.Spec
	if f, err := coll.ParseFunc(spec.Workload.Op); err == nil {
		p2p = f.IsP2P()
	}
	job := spec.Workload.Job != ""
	var out []Setting
	if !p2p {
		out = append(out, choices(site, spec)...)
		out = append(out, collective(site)...)
	}
	out = append(out, ofRCCL(site)...)
	if p2p || job {
		out = append(out, sends(site)...)
	}
	if site.Comm.NNodes > 1 {
		out = append(out, between(site)...)
	}
	if job { // whose network has one routing
		out = slices.DeleteFunc(out, func(s Setting) bool { return s.kind == switches })
	}
	if q.Kernels && !job {
		out = append(out, others(spec, site.Comm.NVLSSupport)...)
	}
	return distinct(out, site, base)
}

// distinct removes settings that are in force already, and duplicates.
func distinct(all []Setting, site *scenario.Site, _ *trial) []Setting {
	var out []Setting
	seen := map[string]bool{}
	for _, s := range all {
		key, set := fmt.Sprint(s.Env), true
		for _, kv := range s.Env {
			set = set && site.Config.Text(kv[0]).Value == kv[1]
		}
		if !seen[key] && !set {
			out = append(out, s)
		}
		seen[key] = true
	}
	return out
}

// choices returns settings that force the algorithm, the protocol, or both.
func choices(site *scenario.Site, spec *scenario.Spec) []Setting {
	m := site.Comm.Model
	on := func(a coll.Algorithm, p coll.Protocol) bool {
		for f := range coll.Func(coll.NumCollFuncs) {
			if own, err := coll.ParseFunc(spec.Workload.Op); err == nil && own != f {
				continue
			}
			if m.Raw[f][a][p] > 0 {
				return true
			}
		}
		return false
	}
	var algos, protos, both []Setting
	protoOn := map[coll.Protocol]bool{}
	for _, a := range coll.Algorithms() {
		some := false
		for _, p := range coll.Protocols() {
			if !on(a, p) {
				continue
			}
			some, protoOn[p] = true, true
			pair := Setting{Env: [][2]string{{"NCCL_ALGO", a.String()}, {"NCCL_PROTO", p.String()}},
				kind: choice, Risk: riskOf(site, p)}
			both = append(both, pair)
		}
		if some {
			algos = append(algos, one(choice, "NCCL_ALGO", a))
		}
	}
	for _, p := range coll.Protocols() {
		if protoOn[p] {
			protos = append(protos, risky(one(choice, "NCCL_PROTO", p), riskOf(site, p)))
		}
	}
	return append(append(protos, algos...), both...)
}

// riskOf warns of LL128 where NCCL itself would not take it.
func riskOf(site *scenario.Site, p coll.Protocol) string {
	if p != coll.LL128 {
		return ""
	}
	for f := range coll.Func(coll.NumCollFuncs) {
		if site.Comm.Model.Bandwidth[f][coll.Ring][p] > 0 {
			return ""
		}
	}
	return site.Comm.Rules.Library.String() +
		" keeps LL128 off here: it needs stores of 128 bytes that arrive whole, or data is corrupted"
}

// collective returns settings for collectives within and between nodes.
func collective(site *scenario.Site) []Setting {
	n := site.Comm.NChannels
	var out []Setting
	for _, c := range []int{n / 4, n / 2} {
		if c >= 1 {
			out = append(out, one(channels, "NCCL_MAX_NCHANNELS", c), one(channels, "NCCL_MAX_CTAS", c))
		}
	}
	for _, c := range []int{n + n/2, 2 * n, 4 * n} {
		if c > n && c <= maxChannels {
			out = append(out, risky(one(channels, "NCCL_MIN_NCHANNELS", c), "takes more SMs from compute"),
				risky(one(channels, "NCCL_MIN_CTAS", c), "takes more SMs from compute"))
		}
	}
	if !site.Comm.Params.Rules.Tuning.Has() {
		for _, t := range []int{256, 512} {
			out = append(out, one(threads, "NCCL_NTHREADS", t))
		}
		for _, t := range []int{320, 640} {
			out = append(out, one(threads, "NCCL_LL128_NTHREADS", t))
		}
	}
	for _, b := range []int{1 << 20, 2 << 20, 8 << 20, 16 << 20} {
		out = append(out, risky(one(buffers, "NCCL_BUFFSIZE", b), memory(b, 4<<20)))
	}
	out = append(out, one(buffers, "NCCL_LL_BUFFSIZE", 2<<20), one(buffers, "NCCL_LL128_BUFFSIZE",
		16*4915200/8))
	if site.Comm.NVLSSupport {
		out = append(out, one(multicast, "NCCL_NVLS_ENABLE", 0))
		for _, c := range []int{65536, 262144} {
			out = append(out, one(buffers, "NCCL_NVLS_CHUNKSIZE", c))
		}
		for _, c := range []int{8, 16, 32} {
			out = append(out, one(multicast, "NCCL_NVLS_NCHANNELS", c))
		}
		if site.Comm.NNodes > 1 {
			for _, c := range []int{32768, 131072, 262144} {
				out = append(out, one(buffers, "NCCL_NVLSTREE_MAX_CHUNKSIZE", c))
			}
		}
	}
	return out
}

// ofRCCL returns settings that RCCL alone reads: threads, windows of channels, its models of machines, and
// the ways that it takes in place of an algorithm. A release without such rules has none.
func ofRCCL(site *scenario.Site) []Setting {
	c, t := site.Comm, &site.Comm.Params.Rules.Tuning
	if !t.Has() {
		return nil
	}
	var out []Setting
	for _, n := range []int{192, 256, 512} {
		if n <= t.Threads(c.Model.In.AMD.Arch, coll.Simple) {
			out = append(out, one(threads, "RCCL_THREADS_PER_BLOCK", n))
		}
	}
	for _, w := range []struct {
		is    bool
		name  string
		value int
	}{
		{c.NNodes > 1, "RCCL_CHANNEL_TUNING_ENABLE", 0},
		{c.Preset != nil && c.Preset.Model >= 0, "RCCL_MODEL_MATCHING_DISABLE", 1},
		{c.Preset != nil && c.Preset.Rail, "RCCL_DISABLE_RAIL_TREES", 1},
		{len(t.DDA) > 0 && c.NNodes == 1, "RCCL_DDA_ENABLE", 0},
		{len(t.Direct) > 0, "RCCL_DIRECT_ALLGATHER_DISABLE", 1},
		{len(t.Direct) > 0 && c.NNodes > 1, "RCCL_DIRECT_REDUCE_SCATTER_DISABLE", 1},
		{len(t.Hierarchical) > 0 && c.NNodes > 1, "RCCL_HIERARCHICAL_ALLGATHER", 0},
	} {
		if w.is {
			out = append(out, one(choice, w.name, w.value))
		}
	}
	if t.KnowsLL128(c.Model.In.AMD.Arch) && !c.Model.In.AMD.LL128 {
		out = append(out, risky(one(choice, "RCCL_LL128_FORCE_ENABLE", 1), "RCCL has LL128 on machines "+
			"that a model says it is right on, of which this is none"))
	}
	return out
}

// maxChannels is MAXCHANNELS (device.h).
const maxChannels = 64

func memory(b, def int) string {
	if b <= def {
		return ""
	}
	return fmt.Sprintf("%d times the memory of each connection", b/def)
}

// sends returns settings for sends and receives.
func sends(site *scenario.Site) []Setting {
	var out []Setting
	for _, c := range []int{1, 2, 4, 8, 16, 32} {
		if c < site.Comm.P2PChannels {
			out = append(out, one(channels, "NCCL_MAX_P2P_NCHANNELS", c))
		} else if c > site.Comm.P2PChannels {
			out = append(out, one(channels, "NCCL_MIN_P2P_NCHANNELS", c))
		}
	}
	for _, c := range []int{131072, 262144, 1 << 20, 2 << 20} {
		out = append(out, one(buffers, "NCCL_P2P_NVL_CHUNKSIZE", c), one(buffers, "NCCL_P2P_PCI_CHUNKSIZE",
			c))
	}
	out = append(out, one(choice, "NCCL_P2P_LL_THRESHOLD", 0), one(choice, "NCCL_P2P_LL_THRESHOLD", 65536))
	if site.Comm.NNodes > 1 {
		for _, c := range []int{1, 2, 4, 8} {
			out = append(out, one(channels, "NCCL_NCHANNELS_PER_NET_PEER", c))
		}
		for _, c := range []int{65536, 262144, 524288, 1 << 20} {
			out = append(out, one(buffers, "NCCL_P2P_NET_CHUNKSIZE", c))
		}
		out = append(out, one(relays, "NCCL_P2P_PXN_LEVEL", 0), one(relays, "NCCL_P2P_PXN_LEVEL", 1))
	}
	return out
}

// between returns settings for the network between nodes.
func between(site *scenario.Site) []Setting {
	out := []Setting{one(relays, "NCCL_PXN_DISABLE", 1), one(relays, "NCCL_CROSS_NIC", 0),
		one(relays, "NCCL_CROSS_NIC", 1)}
	if site.Between() == gpu.Sockets {
		for _, n := range []int{2, 4} {
			out = append(out, one(nics, "NCCL_SOCKET_NTHREADS", n), one(nics, "NCCL_NSOCKS_PERTHREAD", n),
				Setting{Env: [][2]string{{"NCCL_SOCKET_NTHREADS", strconv.Itoa(n)},
					{"NCCL_NSOCKS_PERTHREAD", strconv.Itoa(n)}}, kind: nics})
		}
		return out
	}
	if n := site.Network; n != nil && n.Routing != fabric.Adaptive {
		out = append(out, Setting{Env: [][2]string{{"routing", "adaptive"}}, kind: switches,
			says: "adaptive routing on the switches (routing: adaptive in the fabric's file)",
			Risk: "switches and NICs must be able to do it, for RoCE with reordering at the receiver"})
	}
	for _, n := range []int{2, 4, 8} {
		out = append(out, one(nics, "NCCL_IB_QPS_PER_CONNECTION", n),
			Setting{Env: [][2]string{{"NCCL_IB_QPS_PER_CONNECTION", strconv.Itoa(n)},
				{"NCCL_IB_SPLIT_DATA_ON_QPS", "1"}}, kind: nics})
	}
	for _, l := range []string{"LOC", "PHB", "SYS"} {
		out = append(out, risky(one(nics, "NCCL_NET_GDR_LEVEL", l),
			"whether GPUDirect RDMA works over such a path is a matter of the platform"))
	}
	return append(out, one(nics, "NCCL_NET_GDR_READ", 0), one(nics, "NCCL_NET_GDR_READ", 1),
		one(choice, "NCCL_PAT_ENABLE", 1))
}

// others are kernels that applications call in place of NCCL's over plain buffers.
func others(spec *scenario.Spec, multicast bool) []Setting {
	out := []Setting{{Env: [][2]string{{"buffers", "windows"}}, kind: kernels,
		says: "register both buffers as windows of all ranks (ncclCommWindowRegister; nccl-tests -R 2)",
		Risk: "memory of ncclMemAlloc, registered by all ranks together"}}
	if spec.Workload.Op != "all_reduce" {
		return out
	}
	list := []string{peer.OneShot, peer.OneShotPush, peer.TwoShot}
	if multicast {
		list = append(list, peer.Multimem, peer.MultimemCopy)
	}
	for _, k := range list {
		out = append(out, Setting{Env: [][2]string{{"kernel", k}}, kind: kernels,
			says: "all_reduce by kernel " + k + " of a framework for serving (docs/SERVING.md)",
			Risk: "buffers that all ranks of a node have mapped; times are estimates of the class"})
	}
	return out
}
