package whole

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/builtin"
)

// Times must not contradict each other. Each case is drawn by a seed, so one that fails
// can be run again: CONTRADICT=FIRST-LAST runs others than the seeds of CI.
const contradictCases = 12

func seedsOf(t *testing.T) (first, last uint64) {
	first, last = 1, contradictCases
	if testing.Short() {
		last = contradictCases / 3
	}
	if s := os.Getenv("CONTRADICT"); s != "" {
		a, b, _ := strings.Cut(s, "-")
		var err, err2 error
		first, err = strconv.ParseUint(a, 10, 32)
		last, err2 = strconv.ParseUint(b, 10, 32)
		if err != nil || err2 != nil {
			t.Fatalf("CONTRADICT=%s: write FIRST-LAST", s)
		}
	}
	return first, last
}

// drawRun is a random run.
func drawRun(r *rand.Rand, mostRanks int) scenario.Spec {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	list := builtin.NVIDIA()
	var s scenario.Spec
	var m *builtin.Machine
	for m == nil || m.Domain > 1 {
		m = list[r.IntN(len(list))]
	}
	nodes := 1 + r.IntN(mostRanks/8)
	if r.IntN(2) == 0 {
		nodes = 1 + r.IntN(6)
	}
	s.Machine = scenario.Machine{Nodes: []scenario.Nodes{{Topo: m.Name, Count: nodes}}}
	if r.IntN(4) == 0 {
		s.Machine.Multicast = "off"
	}
	s.NCCL.Env = map[string]string{}
	for _, e := range [][]string{
		{"NCCL_PROTO", "LL", "LL128", "Simple"}, {"NCCL_IB_DISABLE", "1"}, {"NCCL_MAX_NCHANNELS", "1", "3",
			"12"},
		{"NCCL_CROSS_NIC", "0", "1"}, {"NCCL_PXN_DISABLE", "1"}, {"NCCL_NET_GDR_LEVEL", "LOC", "SYS"},
		{"NCCL_P2P_DISABLE", "1"},
	} {
		if r.IntN(6) == 0 {
			s.NCCL.Env[e[0]] = pick(e[1:]...)
		}
	}
	bytes := int64(math.Exp2(3 + 25*r.Float64()))
	if r.IntN(2) == 0 {
		bytes = 1 << (3 + r.IntN(26))
	}
	s.Workload = scenario.Workload{Op: pick("all_reduce", "all_gather", "reduce_scatter", "broadcast",
		"reduce", "alltoall", "sendrecv"),
		Sizes: []string{strconv.FormatInt(bytes, 10)}}
	if r.IntN(5) == 0 {
		s.Workload.Group = 2 + r.IntN(3)
	}
	if r.IntN(3) == 0 {
		s.Engine.Launch = "graph"
	}
	return s
}

// affordable is how long a run may take; one that takes longer says nothing.
const affordable = 10 * time.Second

// rowsOf runs a Spec; nil where it is refused or takes too long.
func rowsOf(s scenario.Spec) []scenario.Row {
	ctx, cancel := context.WithTimeout(context.Background(), affordable)
	defer cancel()
	res, err := scenario.Run(ctx, s, scenario.Options{})
	if err != nil {
		return nil
	}
	return res.Rows
}

// A time that is said to be exact equals that of a run that leaves nothing out, and one
// that has a margin is within it.
func TestTimesKeepTheMarginThatTheyState(t *testing.T) {
	first, last := seedsOf(t)
	held := 0
	for seed := first - 1; seed <= last; seed++ {
		s := drawRun(rand.New(rand.NewPCG(seed, 1)), 640)
		if seed == first-1 { // a kernel of three operations, of which some channels have two
			s = scenario.Spec{
				Machine:  scenario.Machine{Nodes: []scenario.Nodes{{Topo: "gb200-nvl72-2tray", Count: 65}}},
				Workload: scenario.Workload{Op: "reduce_scatter", Sizes: []string{"16777216"}, Group: 3}}
		}
		quick := rowsOf(s)
		if len(quick) == 0 || quick[0].Out.Time == 0 {
			continue
		}
		s.Engine.Fold, s.Engine.Skip = "exact", "off"
		whole := rowsOf(s)
		if len(whole) == 0 {
			continue
		}
		held++
		q, w := &quick[0], &whole[0]
		off := float64(q.Out.Time-w.Out.Time) / float64(w.Out.Time)
		if math.Abs(off) > q.Facts.Margin {
			t.Errorf("seed %d: %v in place of %v, %+.1f %% (%s, margin %.0f %%: %s)\n%s", seed, q.Out.Time,
				w.Out.Time, 100*off, q.Facts.Simulated, 100*q.Facts.Margin, q.Facts.Near, s.JSON())
		}
	}
	t.Logf("%d of %d pairs compared", held, last-first+2)
}

// The bus bandwidth of a row is never above the one that its limiting link allows.
func TestBandwidthIsBelowTheLimitThatIsPrinted(t *testing.T) {
	first, last := seedsOf(t)
	for seed := first; seed <= last; seed++ {
		s := drawRun(rand.New(rand.NewPCG(seed, 2)), 4096)
		for _, row := range rowsOf(s) {
			both := []scenario.Measure{row.Out, row.In}
			if row.Facts.Algo == "-" {
				both = both[:1] // one rank has nothing to do in place
			}
			for _, m := range both {
				if row.Facts.Expect > 0 && m.BusBW > row.Facts.Expect*1.001 {
					t.Errorf("seed %d: %.2f GB/s, the limit %s allows %.2f\n%s", seed, m.BusBW,
						row.Facts.Limit, row.Facts.Expect, s.JSON())
				}
			}
		}
	}
}

// More bytes by the same algorithm, protocol and channels take no less time.
func TestTimesGrowWithBytes(t *testing.T) {
	first, last := seedsOf(t)
	for seed := first; seed <= last; seed++ {
		r := rand.New(rand.NewPCG(seed, 3))
		s := drawRun(r, 640)
		bytes, _ := strconv.ParseInt(s.Workload.Sizes[0], 10, 64)
		more := bytes + 1 + int64(float64(bytes)*r.Float64())
		s.Workload.Sizes = append(s.Workload.Sizes, fmt.Sprint(more))
		rows := rowsOf(s)
		if len(rows) < 2 || rows[0].Bytes == rows[1].Bytes {
			continue
		}
		a, b := &rows[0], &rows[1]
		if a.Facts.Algo != b.Facts.Algo || a.Facts.Proto != b.Facts.Proto ||
			a.Facts.Channels != b.Facts.Channels || a.Out.Time == 0 {
			continue // explain says why
		}
		if loss := 1 - float64(b.Out.Time)/float64(a.Out.Time); loss > 0.02+a.Facts.Margin+b.Facts.Margin {
			t.Errorf("seed %d: %d bytes take %v, %d bytes %v (%s/%s on %d channels; %s, %s)\n%s", seed,
				a.Bytes, a.Out.Time, b.Bytes, b.Out.Time,
				a.Facts.Algo, a.Facts.Proto, a.Facts.Channels, a.Facts.Simulated, b.Facts.Simulated, s.JSON())
		}
	}
}

// A machine that loses a NIC does not become faster by the same algorithm and protocol.
func TestFewerNICsAreNotFaster(t *testing.T) {
	first, last := seedsOf(t)
	for seed := first; seed <= last; seed++ {
		s := drawRun(rand.New(rand.NewPCG(seed, 4)), 256)
		name := regexp.MustCompile(`<net [^>]*name="([^"]*)"`).FindSubmatch(
			builtin.Lookup(s.Machine.Nodes[0].Topo).XML())
		if name == nil || s.NCCL.Env["NCCL_IB_DISABLE"] != "" {
			continue
		}
		all := rowsOf(s)
		s.NCCL.Env["NCCL_IB_HCA"] = "^=" + string(name[1])
		less := rowsOf(s)
		if len(all) == 0 || len(less) == 0 || all[0].Out.Time == 0 {
			continue
		}
		a, b := &all[0], &less[0]
		if a.Facts.Algo != b.Facts.Algo || a.Facts.Proto != b.Facts.Proto ||
			a.Facts.Channels != b.Facts.Channels {
			continue // explain says why
		}
		if gain := 1 - float64(b.Out.Time)/float64(a.Out.Time); gain > 0.02+a.Facts.Margin+b.Facts.Margin {
			t.Errorf("seed %d: %v, without %s %v (%s/%s)\n%s", seed, a.Out.Time, name[1], b.Out.Time,
				a.Facts.Algo, a.Facts.Proto, s.JSON())
		}
	}
}
