package accuracy

import (
	"context"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/internal/refsys"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// lab simulates measured points on the machine they were measured on.
type lab struct {
	systems map[int]*topo.System
	comms   map[string]*comm.Comm
	plans   map[*Point]*plan.Plan
	class   gpu.Class
}

func newLab(t testing.TB) *lab {
	l := &lab{systems: map[int]*topo.System{}, comms: map[string]*comm.Comm{}, plans: map[*Point]*plan.Plan{}, class: gpu.NVSwitch90()}
	for _, r := range golden.Own(t) {
		if r.Name == "h200x4-4.n1" || r.Name == "h200x4-2.n1" {
			r.Load(t)
			s := refsys.System(t, &r)
			l.systems[len(s.Of(topo.GPU))] = s
		}
	}
	return l
}

// comm returns the communicator under a set's settings.
func (l *lab) comm(t testing.TB, s *Set) *comm.Comm {
	key := fmt.Sprint(s.Ranks, s.Algo, s.Proto, s.MaxChannels, s.P2PChannels)
	if c, ok := l.comms[key]; ok {
		return c
	}
	var p comm.Params
	p.Multicast = comm.MulticastOff
	if s.Algo != "" {
		p.Tuning.Algo = units.Some(s.Algo)
	}
	if s.Proto != "" && s.Algo != "" {
		p.Tuning.Proto = units.Some(s.Proto)
	}
	if s.MaxChannels > 0 {
		p.Connect.MaxNChannels = units.Some(s.MaxChannels)
	}
	if s.P2PChannels > 0 {
		p.Connect.MaxP2PNChannels = units.Some(s.P2PChannels)
		p.Connect.MinP2PNChannels = units.Some(s.P2PChannels)
	}
	c, err := comm.FromSystems([]comm.Part{{System: l.systems[s.Ranks]}}, p)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	l.comms[key] = c
	return c
}

func (l *lab) plan(t testing.TB, p *Point) *plan.Plan {
	if q, ok := l.plans[p]; ok {
		return q
	}
	c := l.comm(t, p.Set)
	req, _, err := c.Request(comm.Op{Func: p.Func, Count: p.Count(), Type: p.Set.Type})
	if err != nil {
		t.Fatalf("%s %v %d: %v", p.Set.Name, p.Func, p.Bytes, err)
	}
	q, err := plan.Build(c.Comm, req)
	if err != nil {
		t.Fatalf("%s %v %d: %v", p.Set.Name, p.Func, p.Bytes, err)
	}
	l.plans[p] = q
	return q
}

// predict returns the simulated time in microseconds, graph replay.
func (l *lab) predict(t testing.TB, p *Point) float64 {
	q := l.plan(t, p)
	x, err := sim.New(sim.Config{Comm: q.Comm, Systems: []*topo.System{l.systems[p.Set.Ranks]}, Class: &l.class, Launch: sim.Graph})
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Run(context.Background(), q, trace.Discard)
	if err != nil {
		t.Fatalf("%s %v %d: %v", p.Set.Name, p.Func, p.Bytes, err)
	}
	return r.Elapsed.Micros()
}

type sum struct {
	n    int
	sum  float64
	max  float64
	bias float64
}

func (s *sum) add(e float64) {
	s.n++
	s.sum += math.Abs(e)
	s.bias += e
	s.max = math.Max(s.max, math.Abs(e))
}

func (s *sum) String() string {
	if s.n == 0 {
		return fmt.Sprintf("%4d %6s %6s %6s", 0, "-", "-", "-")
	}
	return fmt.Sprintf("%4d %6.1f %6.1f %+6.1f", s.n, 100*s.sum/float64(s.n), 100*s.max, 100*s.bias/float64(s.n))
}

// TestShowErrors prints errors by set and operation: SHOW=name,… picks sets,
// POINTS=1 lists every point.
func TestShowErrors(t *testing.T) {
	pick := os.Getenv("SHOW")
	if pick == "" {
		t.Skip("a look at the data, by SHOW=prefix,… [POINTS=1]")
	}
	l := newLab(t)
	sets, err := Read(golden.Root(t, "testdata", "measured", "h200x4"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*[2]sum{}
	for _, s := range sets {
		ok := pick == "all"
		for _, p := range strings.Split(pick, ",") {
			ok = ok || strings.HasPrefix(s.Name, p)
		}
		if !ok || s.SHM {
			continue
		}
		by := map[string]*[2]sum{}
		for i := range s.Points {
			p := &s.Points[i]
			got := l.predict(t, p)
			e := got/p.Graph - 1
			if os.Getenv("POINTS") != "" {
				q := l.plan(t, p)
				fmt.Printf("%-18s %-14v %12d %v/%-6v ch %2d meas %10.2f sim %10.2f %+6.1f%%\n", s.Name, p.Func, p.Bytes, q.Req.Algo, q.Req.Proto, q.Split.NChannels, p.Graph, got, 100*e)
			}
			for _, m := range []map[string]*[2]sum{by, all} {
				k := p.Func.TestName()
				if m[k] == nil {
					m[k] = new([2]sum)
				}
				m[k][0].add(e)
				if p.Bytes >= 1<<20 {
					m[k][1].add(e)
				}
			}
		}
		show(s.Name, by)
	}
	show("ALL", all)
}

func show(name string, by map[string]*[2]sum) {
	var keys []string
	for k := range by {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Printf("%-22s %-14s all %v | >=1M %v\n", name, k, &by[k][0], &by[k][1])
	}
}

// TestDefaultAllReduce is the first line drawn: NCCL's own choices on four
// H200, all sizes, within 10 % in the mean.
func TestDefaultAllReduce(t *testing.T) {
	l := newLab(t)
	sets, err := Read(golden.Root(t, "testdata", "measured", "h200x4"))
	if err != nil {
		t.Fatal(err)
	}
	var s sum
	for _, set := range sets {
		if set.Name != "default_4" {
			continue
		}
		for i := range set.Points {
			if p := &set.Points[i]; p.Func == coll.AllReduce {
				s.add(l.predict(t, p)/p.Graph - 1)
			}
		}
	}
	if s.n != 28 || s.sum/float64(s.n) > 0.10 {
		t.Fatalf("default_4 all_reduce: %d points, mean error %.1f %%, want 28 and at most 10 %%", s.n, 100*s.sum/float64(s.n))
	}
	t.Logf("mean error %.1f %%, max %.1f %%", 100*s.sum/float64(s.n), 100*s.max)
}
