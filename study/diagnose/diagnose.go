package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo"
)

// Request is files and what is known beside them.
type Request struct {
	Files []File
	// Spec names the machine as far as it is known; files complete it.
	Spec    scenario.Spec
	Options scenario.Options
	// NoSuspects leaves the suspects out: the verdict alone.
	NoSuspects bool
}

// Verdict is how a measured time compares with the expected one.
type Verdict string

// Verdicts.
const (
	AsExpected Verdict = "as expected"
	Slower     Verdict = "slower"
	Faster     Verdict = "faster"
	Unknown    Verdict = "unknown"
)

// Size is one measured size.
type Size struct {
	Bytes    int64   `json:"bytes"`
	Measured float64 `json:"measuredUs"`
	// Expected is the least, the middle and the most time, microseconds.
	Expected [3]float64 `json:"expectedUs"`
	Verdict  Verdict    `json:"verdict"`
	Table    string     `json:"table,omitempty"` // of several
	Choice   string     `json:"choice,omitempty"`
}

// Suspect is a cause that may explain the measured times.
type Suspect struct {
	Kind string `json:"kind"`
	What string `json:"what"`
	// Rank is the place among the suspects, from 1, where those whose curves the table does not distinguish
	// have one place: that of the likeliest of them.
	Rank int `json:"rank"`
	// Explains is the part of the slowdown that it explains from 1 MiB on: the geometric mean of
	// simulated times with it over those without.
	Explains float64  `json:"explains"`
	Evidence []string `json:"evidence"`
	Prove    string   `json:"prove"`
	Remedy   string   `json:"remedy"`

	// Curve are the times with it at the sizes of Table that were simulated.
	Curve []Point `json:"-"`
	Table string  `json:"-"`
	set   int     // of those whose curves the table does not distinguish, from 1; 0: by itself
}

// Point is a time of a size.
type Point struct {
	Bytes int64
	Us    float64
}

// Report is the answer.
type Report struct {
	Verdict  Verdict   `json:"verdict"`
	From     *int64    `json:"from"`
	Sizes    []Size    `json:"sizes"`
	Suspects []Suspect `json:"suspects"`
	Missing  []string  `json:"missing"`
	Machine  string    `json:"machine,omitempty"`
	Shape    string    `json:"shape,omitempty"` // where the curve parts: latency, crossover, plateau
	// Stuck is what logs and dumps say of a job that hangs or fails.
	Stuck   []string `json:"stuck,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	untried bool     // no suspect was asked for
	// System is a node of the machine of the first table, Site the machine; nil without one.
	System *topo.System   `json:"-"`
	Site   *scenario.Site `json:"-"`
}

// What is missing, in the order in which it would decide.
const (
	missTable = iota
	missHead
	missRanks
	missMachine
	missLog
	missFabric
	missRelease
	missCount
)

// work is a Request in progress.
type work struct {
	*Request
	m       *material
	given   given
	logged  map[string]string
	left    []string // settings of the log that are suspects
	missing [missCount]string
	rep     *Report
	benches []*bench
	expects [][]expected
}

func (q *work) miss(what int, text string) { q.missing[what] = text }

func (q *work) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(q.rep.Notes, n) {
		q.rep.Notes = append(q.rep.Notes, n)
	}
}

// New diagnoses. Errors are of files that cannot be read, and those of scenario.Prepare.
func New(ctx context.Context, req Request) (*Report, error) {
	m, err := read(req.Files)
	if err != nil {
		return nil, err
	}
	q := &work{Request: &req, m: m, given: givenBy(&req.Spec),
		rep: &Report{Verdict: Unknown, Sizes: []Size{}, Suspects: []Suspect{}, Missing: []string{},
			Notes: m.notes}}
	q.logged = loggedSettings(m)
	q.leftOvers()
	if len(m.tables) == 0 && len(m.logs) == 0 && len(m.dumps) == 0 && len(m.facts) == 0 &&
		len(m.wrong) == 0 &&
		len(m.wires) == 0 {
		why := slices.Concat([]string{"nothing to diagnose in the files: give a table of nccl-tests, or a " +
			"log of NCCL or dumps of PyTorch's Flight Recorder of what hangs"}, m.notes)
		return nil, fail.Input(errors.New(strings.Join(why, "; ")))
	}
	q.compared()
	if err := q.tables(ctx); err != nil {
		return nil, err
	}
	q.wired()
	q.stuck()
	q.rep.untried = req.NoSuspects
	if !req.NoSuspects {
		if err := q.suspects(ctx); err != nil {
			return nil, err
		}
	}
	q.said()
	q.rank()
	q.lack()
	return q.rep, nil
}

// rank gives suspects of a set the place of the first of them.
func (q *work) rank() {
	n, sets := 0, map[int]int{}
	for i := range q.rep.Suspects {
		s := &q.rep.Suspects[i]
		if s.Rank = sets[s.set]; s.Rank == 0 || s.set == 0 {
			n++
			s.Rank, sets[s.set] = n, n
		}
	}
}

// blind is the error from which on times that are twice as long are as expected, too.
const blind = 0.5

// tables compares every table with what its machine should give.
func (q *work) tables(ctx context.Context) error {
	if len(q.m.tables) == 0 {
		q.miss(missTable,
			"a table of nccl-tests, for example of all_reduce_perf -b 8 -e 8G -f 2: there are no "+
				"times to judge")
		return nil
	}
	for _, t := range q.m.tables {
		b, err := q.benchOf(t)
		if err != nil {
			return err
		}
		es, err := b.expect(ctx)
		if err != nil {
			return err
		}
		q.benches, q.expects = append(q.benches, b), append(q.expects, es)
		for i, r := range t.rows {
			z := Size{Bytes: r.bytes, Measured: r.us, Choice: es[i].choice,
				Expected: [3]float64{round(es[i].least), round(es[i].us), round(es[i].most)}}
			if len(q.m.tables) > 1 {
				z.Table = t.name()
			}
			if z.Verdict = judge(r.us, es[i].least, es[i].most); z.Verdict == Slower && t.partial() {
				z.Verdict = Unknown
				q.miss(missRanks,
					fmt.Sprintf("the traces of all %d ranks: the time of a kernel has what it waits "+
						"for the last one", t.run.Ranks))
			}
			q.rep.Sizes = append(q.rep.Sizes, z)
		}
		if _, above := b.widths(t.rows[len(t.rows)-1].bytes); above > blind {
			q.note("on such machines %s may take %.1f times as long as simulated, by published tables of "+
				"them or by what their class states: a fault that costs less does not show",
				t.fn.TestName(), 1/(1-above))
		}
	}
	site := q.benches[0].run.Site
	q.rep.Machine = fmt.Sprintf("%d x %s: %s", site.Comm.NNodes, site.Name, site.Times())
	q.rep.Site, q.rep.System = site, site.Cluster.Host(0).Systems[0]
	q.whole()
	return nil
}

// lack lists what is missing, what would decide first.
func (q *work) lack() {
	if len(q.m.logs) == 0 && q.rep.Verdict != AsExpected {
		text := "a log of one rank (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH): it names " +
			"settings, transports and channels"
		if len(q.benches) > 0 && q.benches[0].run.Site.Comm.NNodes > 1 {
			text = "a log of one rank (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH): it names " +
				"GPUDirect, the HCAs in use, settings and channels"
		}
		q.miss(missLog, text)
	}
	if len(q.benches) > 0 {
		if b := q.benches[0]; b.run.Site.Comm.NNodes > 1 && b.spec.Network.Fabric == "" {
			q.miss(missFabric,
				"the network (--fabric, or simccl topo fabric --from ibnetdiscover.txt): an ideal "+
					"non-blocking one is assumed")
		}
	}
	for i, text := range q.missing {
		if text != "" {
			q.rep.Missing = append(q.rep.Missing, text)
		}
		if i == missLog {
			q.rep.Missing = append(q.rep.Missing, q.asks()...)
		}
	}
}

// deciding are the inputs that distinguish a suspect from those of its curve, and the kinds that it
// concerns; all are read.
var deciding = [...]struct{ what, kinds string }{
	{"lspci -vv of a node, by root", "acs pcie"},
	{"nvidia-smi topo -m of a node", "numa virtualised p2p-pcie topology"},
	{"ib_write_bw --report_gbits of each NIC between two nodes, and with --use_cuda",
		"nic-slow link-slow no-gpudirect"},
	{"ibv_devinfo of the nodes", "nic-down mtu"},
	{"mlnx_qos and ethtool -S of a NIC, and a log, which has NCCL_IB_TC", "traffic-class"},
	{"nvidia-smi -q of the nodes, under load", "late-rank"},
	{"the same table on pairs of the nodes, a file each", "slow-node"},
	{"the same table once more, when the network is idle", "congestion hash-collision"},
	{"the same table of another release of NCCL", "release"},
	{"the same table without settings of NCCL", "setting channels qp pxn wrong-hca shm nvls-off"},
	{"STREAM, or ib_write_bw without --use_cuda: what a node's memory gives", "host-memory"},
}

// asks are the inputs that decide between the suspects of the first ranks of which no file says anything,
// the best suspect's first.
func (q *work) asks() (out []string) {
	done := map[string]bool{}
	for i := range q.rep.Suspects {
		s := &q.rep.Suspects[i]
		if s.Rank > fewest || done[s.Kind] || q.weight(s.Kind) >= sure {
			continue
		}
		for _, in := range deciding {
			kinds := strings.Fields(in.kinds)
			if !slices.Contains(kinds, s.Kind) {
				continue
			}
			var shows []string
			for k := range q.rep.Suspects {
				if o := &q.rep.Suspects[k]; o.Rank <= fewest && slices.Contains(kinds, o.Kind) {
					shows = append(shows, o.Kind)
					done[o.Kind] = true
				}
			}
			out = append(out, in.what+": distinguishes "+strings.Join(shows, ", "))
		}
	}
	return out
}
