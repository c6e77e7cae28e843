package diagnose

import (
	"bytes"
	"fmt"
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
	q.versions()
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

var versionLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`NCCL version (\d+\.\d+\.\d+)`)
})

// versions names releases that differ between the logs.
func (q *work) versions() {
	by := map[string]string{}
	var names []string
	for _, f := range q.Files {
		for _, m := range versionLine().FindAllSubmatch(f.Data, -1) {
			if v := string(m[1]); by[v] == "" {
				by[v] = f.Name
				names = append(names, v)
			}
		}
	}
	if len(names) > 1 {
		slices.Sort(names)
		for i, v := range names {
			names[i] = v + " (" + by[v] + ")"
		}
		q.rep.Stuck = append(q.rep.Stuck, "ranks have different releases of NCCL: "+strings.Join(names, ", ")+
			"; NCCL wants one on all")
	}
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
