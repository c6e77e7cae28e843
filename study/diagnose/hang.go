package diagnose

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/simccl/simccl/workload/flight"
)

// warning is a line of NCCL's log, or of PyTorch's watchdog, that says how a job ended.
type warning struct{ pattern, means, collect string }

// warnings are what NCCL says of failures, with the file that prints it.
var warnings = [...]warning{
	{`Mismatched collective detected|Mismatched communicator`,
		"ranks called different operations (init.cc, " +
			"argcheck.cc)",
		"dumps of PyTorch's Flight Recorder of all ranks (TORCH_NCCL_TRACE_BUFFER_SIZE=2000)"},
	{`Got completion from peer .* with status=12`,
		"retries to a peer ran out: its port, cable or route is down, " +
			"or its process has died (net_ib.cc)", "ibstat and dmesg of the peer named; NCCL_IB_TIMEOUT"},
	{`Got completion from peer .* with status=5`,
		"the connection was flushed after an error on another one " +
			"(net_ib.cc)", "the first such line of any rank: it has the cause"},
	{`Got completion from peer .* with status=1[03]`, "the peer refused the access: memory registration or " +
		"receive-not-ready (net_ib.cc)", "dmesg of the peer; nvidia_peermem or DMA-BUF; NCCL_IB_RETRY_CNT"},
	{`Connection closed by remote peer|socketProgress.*[Cc]onnection (?:reset|closed|refused)`,
		"another process has ended: this rank is not the cause (socket.cc)",
		"the log of the rank that ended first"},
	{`Cuda failure .*out of memory`, "no GPU memory was left",
		"memory of every rank before the call; NCCL_BUFFSIZE"},
	{`Call to ibv_modify_qp failed|Call to ibv_create_qp failed`,
		"the NICs cannot reach each other, or limits are " +
			"too low (ibvwrap.cc)", "NCCL_IB_GID_INDEX, show_gids; ulimit -l; the subnets of all NICs"},
	{`Error: network .* not found|Failed to initialize any NET plugin|No socket interface found`,
		"no network that NCCL may use (net.cc, bootstrap.cc)",
		"NCCL_SOCKET_IFNAME, NCCL_NET; ip addr in the container"},
	{`unhandled (?:system|cuda) error|remote process exited`,
		"an error of the system or of CUDA ends the job",
		"the line above it with WARN; dmesg for Xid"},
	{`Watchdog caught collective operation timeout`,
		"PyTorch's watchdog ended a call that did not end (others may " +
			"not have called it)", "dumps of PyTorch's Flight Recorder of all ranks"},
	{`NCCL version mismatch|Mismatched NCCL version`, "ranks have different releases of NCCL (init.cc)",
		"NCCL_DEBUG=VERSION on every node"},
	{`NVRM: Xid`, "the driver reports an error of a GPU", "nvidia-bug-report.sh; nvidia-smi -q"},
}

var warned = sync.OnceValue(func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(warnings))
	for i := range warnings {
		out[i] = regexp.MustCompile(warnings[i].pattern)
	}
	return out
})

// stuck collects what logs and dumps say of a job that hangs or fails.
func (q *work) stuck() {
	for _, f := range q.Files {
		q.warned(f)
	}
	q.differing()
	q.waiting()
}

// warned looks for warnings in a text: the first line of each.
func (q *work) warned(f File) {
	found := map[int]bool{}
	line := 0
	for l := range bytes.Lines(f.Data) {
		line++
		for i, p := range warned() {
			if !found[i] && len(l) <= 4096 && p.Match(l) {
				found[i] = true
				q.rep.Stuck = append(q.rep.Stuck, fmt.Sprintf("%s:%d: %s; collect: %s", f.Name, line,
					warnings[i].means, warnings[i].collect))
			}
		}
	}
}

// ranksLine finds what a rank says of its release and its settings: host, and either a version, or a
// variable with its value. The host is that of NCCL's prefix, host:pid:tid.
var ranksLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:([^\s:]+):\d+:\d+ .*)?(?:NCCL version (\d+\.\d+\.\d+)|` +
		`(NCCL_\w+) set (?:by environment )?to ([^\r\n]*))`)
})

// differing names releases and settings that differ between the ranks whose logs these are. A host that says
// some settings and lacks one that others have has none of it.
func (q *work) differing() {
	const release = "releases of NCCL"
	at := map[string]map[string][]string{} // what, value: hosts
	hosts := map[string]map[string]bool{}  // that say their settings: which
	for _, f := range q.Files {
		for _, m := range ranksLine().FindAllSubmatch(f.Data, -1) {
			where, what, value := cmp.Or(string(m[1]), f.Name), release, string(m[2])
			if m[3] != nil {
				what, value = string(m[3]), strings.TrimRight(string(m[4]), " .")
				if slices.Contains(silent, what) || strings.HasPrefix(what, "NCCL_DEBUG") {
					continue
				}
				if hosts[where] == nil {
					hosts[where] = map[string]bool{}
				}
				hosts[where][what] = true
			}
			if at[what] == nil {
				at[what] = map[string][]string{}
			}
			if !slices.Contains(at[what][value], where) {
				at[what][value] = append(at[what][value], where)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(at)) {
		for _, host := range slices.Sorted(maps.Keys(hosts)) {
			if what != release && !hosts[host][what] {
				at[what]["unset"] = append(at[what]["unset"], host)
			}
		}
		if len(at[what]) < 2 {
			continue
		}
		var values []string
		for _, v := range slices.Sorted(maps.Keys(at[what])) {
			values = append(values, fmt.Sprintf("%s (%s)", v, list3(at[what][v])))
		}
		q.rep.Stuck = append(q.rep.Stuck, fmt.Sprintf("ranks have different %s: %s; NCCL wants one on all",
			what, strings.Join(values, ", ")))
	}
}

// list3 joins the first three of some names.
func list3(names []string) string {
	if n := len(names) - 3; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), n)
	}
	return strings.Join(names, ", ")
}

// waiting says of dumps who waits for whom, and which calls do not match.
func (q *work) waiting() {
	if len(q.m.dumps) < 2 {
		if len(q.m.dumps) == 1 {
			q.rep.Stuck = append(q.rep.Stuck, q.m.dumps[0].File+
				": the dumps of the other ranks say who is waited for")
		}
		return
	}
	type call struct {
		file  string
		entry *flight.Entry
	}
	last := map[string]map[string]int64{}
	calls := map[string]map[int64]call{}
	var groups []string
	for _, d := range q.m.dumps {
		for i := range d.Entries {
			e := &d.Entries[i]
			if e.P2P {
				continue
			}
			if last[e.Group] == nil {
				last[e.Group], calls[e.Group] = map[string]int64{}, map[int64]call{}
				groups = append(groups, e.Group)
			}
			last[e.Group][d.File] = max(last[e.Group][d.File], e.Seq)
			first, ok := calls[e.Group][e.Seq]
			if !ok {
				calls[e.Group][e.Seq] = call{d.File, e}
			} else if why := differ(first.entry, e); why != "" {
				q.rep.Stuck = append(q.rep.Stuck, fmt.Sprintf("group %s, call %d: %s, %s; %s", e.Group, e.Seq,
					first.file, d.File, why))
				return
			}
		}
	}
	for _, g := range groups {
		var least, most string
		for _, d := range q.m.dumps {
			n, ok := last[g][d.File]
			if !ok {
				continue
			}
			if least == "" || n < last[g][least] {
				least = d.File
			}
			if most == "" || n > last[g][most] {
				most = d.File
			}
		}
		if n := last[g][least]; n < last[g][most] {
			e := calls[g][n+1].entry
			q.rep.Stuck = append(q.rep.Stuck,
				fmt.Sprintf("group %s: %s waits in call %d (%s) for %s, whose last is %d",
					g, most, n+1, e.Name, least, n))
		}
	}
}

// differ says in what two ranks' entries of one call differ.
func differ(a, b *flight.Entry) string {
	switch {
	case a.Name != b.Name:
		return fmt.Sprintf("one called %s, the other %s", a.Name, b.Name)
	case a.Name == "all_reduce" && flight.Elements(a.In) != flight.Elements(b.In):
		return fmt.Sprintf("%s of %d elements, the other of %d", a.Name, flight.Elements(a.In),
			flight.Elements(b.In))
	case a.InType != b.InType:
		return fmt.Sprintf("%s of %s, the other of %s", a.Name, a.InType, b.InType)
	}
	return ""
}
