package uec

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/simccl/simccl/units"
)

// drawn is a network, flows and settings by chance: incasts, flows that wait for others, pools,
// few and many paths, and queues that overflow.
func drawn(r *rand.Rand) (*Network, []Flow, *Config) {
	n := &Network{Leaves: 1 + r.IntN(4), PerLeaf: 2 + r.IntN(4), Spines: 1 + r.IntN(4), HostRate: 100e9,
		SpineRate: int64(1+r.IntN(4)) * 50e9,
		HostDelay: units.Time(1+r.IntN(20)) * 100 * units.Nanosecond, SpineDelay: units.Time(1+r.IntN(20)) *
			100 * units.Nanosecond, LeafLatency: units.Time(r.IntN(2)) * 300 * units.Nanosecond}
	c := &Config{Seed: r.Uint64(), Balance: Balance(r.IntN(len(balances()))), Paths: 1 << r.IntN(7),
		MTU: []int{256, 1064, 4150, 9000}[r.IntN(4)]}
	hot := r.IntN(3) == 0
	var flows []Flow
	for i := range 1 + r.IntN(40) {
		f := Flow{Src: int32(r.IntN(n.Hosts())), Dst: int32(r.IntN(n.Hosts())), Bytes: 1 +
			int64(r.IntN(200_000)), ID: uint32(i + 1)}
		if hot {
			f.Dst = 0
		}
		if f.Src == f.Dst {
			f.Dst = (f.Src + 1) % int32(n.Hosts())
		}
		if r.IntN(4) == 0 {
			f.Start = units.Time(r.IntN(30)) * units.Microsecond
		} else if i > 0 && r.IntN(3) == 0 {
			f.Deps = []int32{int32(r.IntN(i))}
		}
		flows = append(flows, f)
	}
	if r.IntN(4) == 0 {
		flows = append(flows, Flow{Src: 0, Dst: 1, Bytes: 5000, ID: 98}, Flow{Src: 1, Dst: 0, Bytes: 5000,
			ID: 99})
		c.Pools = [][]int32{{int32(len(flows) - 2), int32(len(flows) - 1)}}
		flows[0].Pool, flows[len(flows)-2].Pool = 1, 1
	}
	return n, flows, c
}

// TestTurnsChangeNothing: sides that take turns give what windows of all nodes give, in all that is
// not counted by windows or by acknowledgements after the end.
func TestTurnsChangeNothing(t *testing.T) {
	taken, anew := 0, 0
	for i := range uint64(300) {
		n, flows, c := drawn(rand.New(rand.NewPCG(i, 27)))
		turns, all := build(n, flows, c), build(n, flows, c)
		if !turns.mayTurn() {
			continue
		}
		done, err := turns.run(true)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			taken++
		} else {
			anew++
		}
		r, err := Run(n, flows, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.run(false); err != nil {
			t.Fatal(err)
		}
		all.peaks()
		for _, r := range []*Result{r, &all.res} {
			r.Windows, r.Acks = 0, 0
		}
		if !reflect.DeepEqual(r, &all.res) {
			t.Fatalf("network %d: %+v\nin turns\n%+v\nwith windows of all nodes\n%+v %+v", i, r, all.res, n,
				c)
		}
	}
	if taken < 200 || anew == 0 {
		t.Errorf("%d in turns, %d begun anew: too few to tell", taken, anew)
	}
}

// TestStirs: what moves when the last flow ends matters unless it is acknowledgements.
func TestStirs(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(e *engine)
		want bool
	}{
		{"nothing", func(*engine) {}, false},
		{"an acknowledgement", func(e *engine) { e.links[3].hi.push(0, flagAck, 7) }, false},
		{"data", func(e *engine) { e.links[3].low.push(0, 0, 7) }, true},
		{"a NACK", func(e *engine) { e.links[3].hi.push(0, flagNack, 7) }, true},
		{"a header", func(e *engine) { e.links[3].hi.push(0, flagTrimmed, 7) }, true},
		{"a NACK at its host", func(e *engine) { e.hosts[1].control.push(0, flagNack, 0) }, true},
		{"a packet that came twice, after the end", func(e *engine) { e.again = 6 }, true},
		{"a packet that came twice, before the end", func(e *engine) { e.again = 4 }, false},
		{"a drop", func(e *engine) { e.res.Drops = 1 }, true},
	} {
		e := build(small(), []Flow{{Src: 0, Dst: 4, Bytes: 1, ID: 1}}, &Config{Paths: 64, MTU: 4150})
		e.res.Flows[0].End = 5
		if c.edit(e); e.stillMoving() != c.want {
			t.Errorf("%s: %v, want %v", c.name, e.stillMoving(), c.want)
		}
	}
}
