package uec

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/units"
)

func small() *Network {
	return &Network{Leaves: 2, PerLeaf: 4, Spines: 4, HostRate: 100e9, SpineRate: 100e9,
		HostDelay: units.Microsecond, SpineDelay: units.Microsecond}
}

// shifted is each host sending to the host so many places on.
func shifted(n *Network, by int, bytes int64) (flows []Flow) {
	for i := range n.Hosts() {
		flows = append(flows, Flow{Src: int32(i), Dst: int32((i + by) % n.Hosts()), Bytes: bytes,
			ID: uint32(i + 1)})
	}
	return flows
}

// TestAloneIsExact: a flow of one packet over four links takes their times, and
// the acknowledgement's back.
func TestAloneIsExact(t *testing.T) {
	n := small()
	r, err := Run(n, []Flow{{Src: 0, Dst: 4, Bytes: 1000, ID: 1}}, &Config{Balance: Mixed, Paths: 64,
		MTU: 4150})
	if err != nil {
		t.Fatal(err)
	}
	hop := func(bytes int) units.Time { return units.Time(80*bytes) + units.Microsecond }
	if want := 4*hop(1064) + 4*hop(64); r.Flows[0].End != want {
		t.Errorf("ends at %v, want %v", r.Flows[0].End, want)
	}
}

// TestParameters: the constants that htsim prints for this network.
func TestParameters(t *testing.T) {
	e := build(small(), nil, &Config{Paths: 64, MTU: 4150})
	if e.queue != 29*4150 || e.nscc != cc.NewUltra(9_348_480, small().HostRate, 4150, Header) {
		t.Errorf("%+v, queue %d", e.nscc, e.queue)
	}
}

// TestSeedsRepeat: equal seeds give equal results.
func TestSeedsRepeat(t *testing.T) {
	n := small()
	run := func(seed uint64) *Result {
		r, err := Run(n, shifted(n, 3, 500_000), &Config{Seed: seed, Balance: Oblivious, Paths: 64,
			MTU: 4150})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if !reflect.DeepEqual(run(5), run(5)) {
		t.Error("seed 5 gives two results")
	}
	if reflect.DeepEqual(run(5), run(6)) {
		t.Error("seeds 5 and 6 give one result")
	}
}

// TestEveryBalanceEnds: all flows end under each balance, also where eight hosts
// send to one.
func TestEveryBalanceEnds(t *testing.T) {
	n := small()
	for b := range balances() {
		flows := shifted(n, 4, 300_000)
		for i := 1; i < 8; i++ {
			flows = append(flows, Flow{Src: int32(i), Dst: 0, Bytes: 300_000, ID: uint32(100 + i)})
		}
		r, err := Run(n, flows, &Config{Seed: 1, Balance: Balance(b), Paths: 64, MTU: 4150})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range r.Flows {
			if !f.Done {
				t.Errorf("%v: flow %d did not end", Balance(b), i)
			}
		}
	}
}

// TestNoAllocationPerPacket: eight times the packets need hardly more memory, with sprayed packets, trims and
// all that is sent again.
func TestNoAllocationPerPacket(t *testing.T) {
	n := small()
	count := func(bytes int64) float64 {
		flows := append(shifted(n, 3, bytes), shifted(n, 5, bytes)...)
		for i := range flows {
			flows[i].ID = uint32(i + 1)
		}
		return testing.AllocsPerRun(1, func() {
			if _, err := Run(n, flows, &Config{Seed: 1, Balance: Mixed, Paths: 64, MTU: 4150}); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := count(1_000_000), count(8_000_000)
	if many > few+500 {
		t.Errorf("%.0f allocations, and %.0f for eight times the packets", few, many)
	}
	t.Logf("%.0f allocations, and %.0f for eight times the packets", few, many)
}

// TestReceiverKeepsOrder: whatever the order in which packets come, each counts
// once, and what is acknowledged is what came.
func TestReceiverKeepsOrder(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		var v receiver
		came := map[uint32]bool{}
		for _, p := range r.Perm(700) {
			psn := uint32(p)
			if v.has(psn) != came[psn] {
				t.Fatalf("seed %d: has(%d) is %v", seed, psn, v.has(psn))
			}
			came[psn] = true
			if psn == v.expected {
				v.advance()
			} else {
				v.note(psn)
				v.holes++
			}
			base := v.base(psn)
			bits := v.bits(base)
			for i := range uint32(64) {
				if want := came[base+i] && base+i >= v.expected; bits>>i&1 != 0 != want {
					t.Fatalf("seed %d: bit %d of base %d, expected %d", seed, i, base, v.expected)
				}
			}
		}
		if v.expected != 700 || v.holes != 0 {
			t.Fatalf("seed %d: expected %d with %d holes", seed, v.expected, v.holes)
		}
	}
}

func TestCheck(t *testing.T) {
	n, ok := small(), Config{Paths: 64, MTU: 4150}
	for _, c := range []struct {
		f    Flow
		edit func(n *Network, c *Config)
	}{
		{f: Flow{Src: 0, Dst: 0, Bytes: 1}}, {f: Flow{Src: 0, Dst: 99, Bytes: 1}}, {f: Flow{Src: 0, Dst: 1}},
		{f: Flow{Src: 0, Dst: 1, Bytes: 1, Deps: []int32{0}}},
		{edit: func(_ *Network, c *Config) { c.Paths = 3 }},
		{edit: func(_ *Network, c *Config) { c.MTU = 64 }},
		{edit: func(n *Network, _ *Config) { n.HostDelay = 0 }},
		{edit: func(n *Network, _ *Config) { n.Spines = 0 }},
		{edit: func(_ *Network, c *Config) { c.Balance = 9 }},
	} {
		m, cfg, flows := *n, ok, []Flow{{Src: 0, Dst: 1, Bytes: 1}}
		if c.edit != nil {
			c.edit(&m, &cfg)
		} else {
			flows[0] = c.f
		}
		if _, err := Run(&m, flows, &cfg); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
