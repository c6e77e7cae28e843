package diagnose

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/simccl/simccl/internal/termtext"
)

// fact is what files say of a suspect.
type fact struct {
	kind, text string
	// weight is by how much likelier the fact makes a suspect of its kind, as ln; below 0 it is
	// against it.
	weight float64
}

// Weights of facts. What is sure decides before any curve: the line is of the cause itself. A hint is also
// met where nothing is wrong: ports without a cable, GPUs that lower idle links, counters since the start.
const sure, hint, counted = 20.0, 6.0, 3.0

// rule finds facts in lines of what NCCL and the tools of a system print, and of what people write.
type rule struct {
	kind    string
	weight  float64
	pattern string
	unless  string // found anywhere in the text it makes the lines no evidence
	says    string
}

// evidence are the rules. A line is evidence of all kinds that match, by the first rule of each.
var evidence = [...]rule{
	// NCCL's log (net_ib.cc, net.cc, transport/*.cc, init.cc, nvls.cc, graph/paths.cc).
	{"no-gpudirect", sure, `GPU Direct RDMA Disabled for HCA`, "", "NCCL has no GPUDirect RDMA for a NIC"},
	{"no-gpudirect", sure, `GPU Direct RDMA Disabled`, `GPU Direct RDMA Enabled|/GDRDMA`,
		"NCCL has no GPUDirect RDMA for a NIC"},
	{"wrong-transport", sure, `Using network Socket|via NET/Socket|NET/IB : No device found`, "",
		"NCCL's traffic between nodes is TCP"},
	{"no-gpudirect", sure,
		`\[(?:send|receive)\] via NET/(?:IB|gIB|OFI|UCX|AWS Lib|Lib)\w*/\d+(?:\(\d+\))?(?:/Shared)?\s*$`,
		`/GDRDMA`,
		"data goes to the NIC without GPUDirect RDMA"},
	{"shm", hint, `via SHM/`, "", "GPUs of a node exchange through shared memory"},
	{"nvls-off", sure, `NVLS multicast support is not available`, "", "NCCL found no multicast"},
	{"topology", sure, `Could not find a path for pattern`, "", "NCCL could not make sense of the topology"},
	{"virtualised", counted, `Topology detection : could not read`, "",
		"NCCL could not read parts of the topology, as in virtual machines"},
	// lspci -vv.
	{"pcie", sure, `LnkSta:.*Width x\d+ \(downgraded\)`, "", "a PCIe link has fewer lanes than it can have"},
	{"pcie", counted, `LnkSta:.*downgraded`, "",
		"a PCIe link runs below what it can, as those of idle GPUs do"},
	{"acs", sure, `ACSCtl:.*SrcValid\+`, "", "ACS is on at a bridge"},
	// ibstat, ibv_devinfo, ip link.
	{"nic-down", hint, `^\s*(?:State: (?:Down|Initializing)|Physical state: (?:Polling|Disabled|Sleep))|` +
		`state:\s+PORT_(?:DOWN|INIT)`, "", "a port of a NIC is not active"},
	{"mtu", hint, `active_mtu:\s+(?:256|512|1024)\b|<BROADCAST.*\bmtu 1500\b`, "", "frames are small"},
	// nvidia-smi -q.
	{"late-rank", hint,
		`(?:HW|SW) (?:Thermal |Power Brake |Power )?(?:Slowdown|Capping?|Brake)?\s*:\s*Active\b`,
		"", "a GPU is slowed down"},
	// ethtool -S: counters above 0.
	{"congestion", counted, `^\s*(?:rx_discards_phy|rx_prio\d+_discards|rx_out_of_buffer|out_of_buffer|` +
		`np_cnp_sent|rp_cnp_handled|rx_ecn_mark|out_of_sequence|packet_seq_err|tx_prio\d+_pause_duration|` +
		`rx_prio\d+_pause_duration)\s*:\s*[1-9]\d*`, "", "frames were dropped, marked or paused"},
	{"traffic-class", counted, `^\s*rx_prio0_discards\s*:\s*[1-9]\d*`, "",
		"frames of priority 0, which no class protects, were dropped"},
	// What people write beside a table: from written on.
	{"numa", sure, `(?i)\b(?:other|cross|wrong|remote|different)[- ](?:numa|socket|cpu)\b`, "",
		"NICs are at another CPU than the GPUs"},
	{"no-gpudirect", sure,
		`(?i)\b(?:gdr|gpudirect(?: rdma)?)(?: is)? (?:off|disabled|not (?:used|enabled|available))\b|` +
			`\bno (?:gdr|gpudirect)\b|nv(?:idia)?_peer_?mem(?: is)? not (?:loaded|found)`, "",
		"there is no GPUDirect RDMA"},
	{"acs", sure, `(?i)\bacs(?: is)? (?:on|enabled)\b`, "", "ACS is on"},
	{"acs", hint, `(?i)\biommu(?: is)?[ =:]+(?:on|enabled)\b`, `iommu=pt`, "an IOMMU is on"},
	{"mtu", hint, `(?i)\bmtu\b[^0-9]{0,16}\b1500\b`, "", "frames are small"},
	{"traffic-class", hint, `(?i)\b(?:wrong|default|lossy|no) traffic class\b|` +
		`\bNCCL_IB_TC(?: is)? (?:not set|unset)\b|` +
		`\bpfc(?: is)? (?:off|disabled|not (?:set|configured|enabled))\b`, "", "RoCE has no class that PFC protects"},
	{"routing", sure, `(?i)\b(?:without|no) adaptive routing\b|\badaptive routing(?: is)? (?:off|disabled)\b`,
		"",
		"routes are static"},
	{"host-memory", sure, `(?i)\bcpu[ -]to[ -]cpu\b|\bhost[ -]to[ -]host\b`, "", "data is of host memory"},
}

// written is the first of the rules of what people write.
var written = slices.IndexFunc(evidence[:], func(r rule) bool { return strings.HasPrefix(r.pattern, "(?i)") })

// compiled are the patterns of evidence; those of unless are nil where a rule has none.
var compiled = sync.OnceValue(func() (out [len(evidence)]struct{ line, unless *regexp.Regexp }) {
	for i := range evidence {
		out[i].line = regexp.MustCompile(evidence[i].pattern)
		if u := evidence[i].unless; u != "" {
			out[i].unless = regexp.MustCompile(u)
		}
	}
	return out
})

// tools are words by which the output of a tool is known that says nothing bad.
var tools = [...]string{"LnkSta:", "ACSCtl:", "Physical state:", "active_mtu", "NIC statistics:",
	"==============NVSMI LOG==============", "CA type:", "hca_id:"}

// factsOf looks for facts in a text: of each kind the first line of the weightiest rule, and how many more
// there are.
func factsOf(name string, text []byte) (out []fact) {
	rules := compiled()
	at, more := map[string]int{}, map[string]int{}
	excused := map[int]bool{} // rules that the text has something against, of those that were met
	if within(text) {
		for i := range written {
			excused[i] = slices.Contains(between[:], evidence[i].kind)
		}
	}
	line := 0
	for l := range bytes.Lines(text) {
		line++
		if len(l) > 4096 {
			continue
		}
		own := bytes.Contains(l, []byte(" NCCL INFO ")) // NCCL's own line, not a user's words
		var met []string
		for i := range rules {
			r := &evidence[i]
			if own && i >= written || slices.Contains(met, r.kind) || !rules[i].line.Match(l) {
				continue
			}
			if _, ok := excused[i]; !ok {
				excused[i] = rules[i].unless != nil && rules[i].unless.Match(text)
			}
			if excused[i] {
				continue
			}
			met = append(met, r.kind)
			f := fact{r.kind, fmt.Sprintf("%s:%d: %s: %s", name, line, r.says,
				termtext.Quote(strings.TrimSpace(string(l)), 120)), r.weight}
			if k, ok := at[r.kind]; !ok {
				at[r.kind] = len(out)
				out = append(out, f)
			} else if more[r.kind]++; f.weight > out[k].weight {
				out[k] = f
			}
		}
	}
	for kind, n := range more { //lint:sorted each changes its own entry
		out[at[kind]].text += fmt.Sprintf(", and %d more lines", n)
	}
	return out
}

// between are the kinds that concern traffic between nodes. A log whose communicators are all of one node
// is no evidence of them: what NCCL says of NICs (No device found, GPU Direct RDMA Disabled) costs nothing.
var between = [...]string{"no-gpudirect", "wrong-transport"}

var nodesIn = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bnNodes (\d+)\b`) })

// within reports whether a log says that all its communicators are of one node.
func within(text []byte) bool {
	all := nodesIn().FindAllSubmatch(text, -1)
	return len(all) > 0 && !slices.ContainsFunc(all, func(m [][]byte) bool { return string(m[1]) != "1" })
}

// knownText reports whether a text is a tool's in which facts are looked for.
func knownText(text []byte) bool {
	for _, w := range tools {
		if bytes.Contains(text, []byte(w)) {
			return true
		}
	}
	return false
}

// costly are settings that a log may show and that a machine without them does better with, as a
// rule: they are suspects, not a part of the machine.
func costly(name, value string) bool {
	switch name {
	case "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_PXN_DISABLE":
		return value != "0"
	case "NCCL_NVLS_ENABLE":
		return value == "0"
	case "NCCL_NET":
		return value == "Socket"
	case "NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_NTHREADS", "NCCL_BUFFSIZE",
		"NCCL_NET_GDR_LEVEL", "NCCL_MAX_P2P_NCHANNELS", "NCCL_NCHANNELS_PER_NET_PEER", "NCCL_P2P_LEVEL",
		"NCCL_MAX_NRINGS":
		return true
	}
	return false
}

// leftOvers takes the costly settings out of those of the log.
func (q *work) leftOvers() {
	for k, v := range q.logged { //lint:sorted each is by itself, and facts are looked up by kind
		if costly(k, v) {
			delete(q.logged, k)
			q.left = append(q.left, k+"="+v)
			q.m.facts = append(q.m.facts, fact{leftOver(k + "=" + v), fmt.Sprintf("%s: %s is set to %s",
				strings.Join(q.m.logs, ", "), k, v), hint})
		}
	}
}

// said adds suspects that files name where no times do, or that no simulation could judge.
func (q *work) said() {
	for _, w := range q.m.wrong {
		q.rep.Suspects = append(q.rep.Suspects, Suspect{Kind: "defect", What: "results were wrong",
			Explains: 1,
			Evidence: []string{w}, Prove: "repeat with -c 1; compute-sanitizer; other NCCL releases",
			Remedy: "take the GPU or link out whose ranks are wrong; report it to NCCL with the table"})
	}
	// What files are sure of comes first, simulated or not.
	first := slices.IndexFunc(q.rep.Suspects, func(s Suspect) bool { return q.weight(s.Kind) < sure })
	if first < 0 {
		first = len(q.rep.Suspects)
	}
	for _, f := range q.m.facts {
		if f.weight <= 0 || f.weight < sure && len(q.benches) > 0 && q.rep.Verdict == AsExpected ||
			slices.ContainsFunc(q.rep.Suspects, func(s Suspect) bool { return s.Kind == f.kind }) {
			continue
		}
		s := Suspect{Kind: f.kind,
			What:     "a file says so; it was not simulated, or explains less of the times",
			Explains: 1, Evidence: []string{f.text}, Prove: unsimulated[f.kind].prove,
			Remedy: unsimulated[f.kind].remedy}
		for _, c := range everyKind() {
			if c.kind == f.kind {
				s.Prove, s.Remedy = c.prove, c.remedy
			}
		}
		if f.weight < sure {
			q.rep.Suspects = append(q.rep.Suspects, s)
			continue
		}
		q.rep.Suspects = slices.Insert(q.rep.Suspects, first, s)
		first++
	}
}

// unsimulated are proofs and remedies of kinds that are no candidates of every machine.
var unsimulated = map[string]struct{ prove, remedy string }{
	"numa": {"nvidia-smi topo -m: SYS between the GPUs and NICs of the job; numactl --show in the ranks",
		"allocate NICs of the GPUs' NUMA node; bind ranks to it"},
	"topology": {"NCCL_TOPO_DUMP_FILE=topo.xml, then simccl topo lint topo.xml",
		"mount /sys in the container; give NCCL the real topology: NCCL_TOPO_FILE, from the cloud's image"},
	"host-memory": {"numactl -H; the same transfer from the other CPU's memory",
		"bind ranks and buffers to the CPU of their NICs; GPU memory in place of the host's"},
}

// weight is how much files say for a kind, less what they say against it.
func (q *work) weight(kind string) float64 {
	most, least := 0.0, 0.0
	for _, f := range q.m.facts {
		if f.kind == kind {
			most, least = max(most, f.weight), min(least, f.weight)
		}
	}
	return most + least
}

// everyKind are candidates of all kinds, of a machine that may have them all.
func everyKind() []candidate {
	p := place{nodes: 2, gpus: 2, nics: []string{"mlx5_0", "mlx5_1"}, nvlink: true, nvls: true}
	out := append(nics(&p), wires()...)
	return append(append(out, inside(&p)...), settings(&p)...)
}
