package diagnose

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/simccl/simccl/internal/termtext"
)

// fact is what a line of a file says of a suspect.
type fact struct{ kind, text string }

// rule finds facts in lines of what NCCL and the tools of a system print.
type rule struct {
	kind    string
	pattern string
	says    string
}

// evidence are the rules. A line is evidence of the first that matches.
var evidence = [...]rule{
	// NCCL's log (net_ib.cc, net.cc, transport/*.cc, init.cc, nvls.cc).
	{"no-gpudirect", `GPU Direct RDMA Disabled`, "NCCL has no GPUDirect RDMA for a NIC"},
	{"wrong-transport", `Using network Socket|via NET/Socket|NET/IB : No device found`,
		"NCCL's traffic between nodes is TCP"},
	{"shm", `via SHM/`, "GPUs of a node exchange through shared memory"},
	{"nvls-off", `NVLS multicast support is not available`, "NCCL found no multicast"},
	{"topology", `Could not find a path for pattern|Topology detection : could not read`,
		"NCCL could not make sense of the topology"},
	// lspci -vv.
	{"pcie", `LnkSta:.*downgraded`, "a PCIe link runs below what it can"},
	{"acs", `ACSCtl:.*SrcValid\+`, "ACS is on at a bridge"},
	// ibstat, ibv_devinfo, ip link.
	{"nic-down", `^\s*(?:State: (?:Down|Initializing)|Physical state: (?:Polling|Disabled|Sleep))|` +
		`state:\s+PORT_(?:DOWN|INIT)`, "a port of a NIC is not active"},
	{"mtu", `active_mtu:\s+(?:256|512|1024)\b|<BROADCAST.*\bmtu 1500\b`, "frames are small"},
	// nvidia-smi -q.
	{"late-rank", `(?:HW|SW) (?:Thermal |Power Brake |Power )?(?:Slowdown|Capping?|Brake)?\s*:\s*Active\b`,
		"a GPU is slowed down"},
	// ethtool -S: counters above 0.
	{"congestion", `^\s*(?:rx_discards_phy|rx_prio\d+_discards|rx_out_of_buffer|out_of_buffer|np_cnp_sent|` +
		`rp_cnp_handled|rx_ecn_mark|out_of_sequence|packet_seq_err|tx_prio\d+_pause_duration|` +
		`rx_prio\d+_pause_duration)\s*:\s*[1-9]\d*`, "frames were dropped, marked or paused"},
}

var patterns = sync.OnceValue(func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(evidence))
	for i := range evidence {
		out[i] = regexp.MustCompile(evidence[i].pattern)
	}
	return out
})

// tools are words by which the output of a tool is known that says nothing bad.
var tools = [...]string{"LnkSta:", "ACSCtl:", "Physical state:", "active_mtu", "NIC statistics:",
	"==============NVSMI LOG==============", "CA type:", "hca_id:"}

// factsOf looks for facts in a text: of each kind the first line, and how many more there are.
func factsOf(name string, text []byte) (out []fact) {
	at, more := map[string]int{}, map[string]int{}
	line := 0
	for l := range bytes.Lines(text) {
		line++
		if len(l) > 4096 {
			continue
		}
		for i, p := range patterns() {
			if !p.Match(l) {
				continue
			}
			r := &evidence[i]
			if _, ok := at[r.kind]; ok {
				more[r.kind]++
				break
			}
			at[r.kind] = len(out)
			out = append(out, fact{r.kind, fmt.Sprintf("%s:%d: %s: %s", name, line, r.says,
				termtext.Quote(strings.TrimSpace(string(l)), 120))})
			break
		}
	}
	for kind, n := range more { //lint:sorted each changes its own entry
		out[at[kind]].text += fmt.Sprintf(", and %d more lines", n)
	}
	return out
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
				strings.Join(q.m.logs, ", "), k, v)})
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
	if len(q.benches) > 0 && q.rep.Verdict == AsExpected {
		return
	}
	for _, f := range q.m.facts {
		known := false
		for i := range q.rep.Suspects {
			known = known || q.rep.Suspects[i].Kind == f.kind
		}
		if known {
			continue
		}
		s := Suspect{Kind: f.kind,
			What:     "a file says so; it was not simulated, or explains less of the times",
			Explains: 1, Evidence: []string{f.text}}
		for _, c := range everyKind() {
			if c.kind == f.kind {
				s.Prove, s.Remedy = c.prove, c.remedy
			}
		}
		q.rep.Suspects = append(q.rep.Suspects, s)
	}
}

// everyKind are candidates of all kinds, of a machine that may have them all.
func everyKind() []candidate {
	p := place{nodes: 2, gpus: 2, nics: []string{"mlx5_0", "mlx5_1"}, nvlink: true, nvls: true}
	out := append(nics(&p), wires()...)
	return append(append(out, inside(&p)...), settings(&p)...)
}
