package fabric

import (
	"errors"
	"fmt"
	"testing"
)

// FuzzRoutes makes networks by their structure, binds them to three hosts of two
// nets and asks for every way and tree: each way must lead from wire to wire, and
// every error must have its type.
func FuzzRoutes(f *testing.F) {
	f.Add([]byte{1, 0, 2, 0, 1, 8, 1, 8, 2, 8, 3, 8, 4, 8, 5, 8})
	f.Add([]byte{3, 1, 1, 0, 6, 1, 7, 2, 6, 6, 7, 6, 7, 8})
	f.Fuzz(func(t *testing.T, script []byte) {
		n, seed := scripted(script)
		again, err := ParseNetwork(n.Format(), "f")
		if err != nil {
			var bad *FormatError
			if !errors.As(err, &bad) || bad.Line < 1 {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		nets := []int{2, 2, 2}
		fab, err := again.Bind(nets, seed)
		if err != nil {
			var bad *BindError
			if !errors.As(err, &bad) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		if len(again.Cables) > 0 {
			c := again.Cables[int(seed)%len(again.Cables)]
			fab.Degrade(c.A, c.B, float64(seed%3), 0)
			fab.Lose(c.B, c.A, 0.5)
		}
		routeAll(t, fab, nets)
	})
}

// scripted turns bytes into a network; its text may be refused.
func scripted(script []byte) (*Network, uint64) {
	at := 0
	next := func(n int) int {
		if at >= len(script) {
			return 0
		}
		at++
		return int(script[at-1]) % n
	}
	n := &Network{Routing: []Routing{ECMP, Adaptive, Static}[next(3)]}
	for i := range 1 + next(5) {
		n.Switches = append(n.Switches, Switch{Name: fmt.Sprintf("s%d", i), Radix: next(4) * 20})
	}
	end := func() string {
		switch k := next(6 + len(n.Switches)); {
		case k < 6 && next(8) == 7:
			return End{k / 2, k % 2, 1 + next(2)}.String()
		case k < 6:
			return End{k / 2, k % 2, 0}.String()
		default:
			return n.Switches[k-6].Name
		}
	}
	seed := uint64(next(256))
	for i := 0; i < 6 && next(8) != 7; i++ { // most networks have all ports cabled
		n.Cables = append(n.Cables, Cable{A: End{i / 2, i % 2, 0}.String(),
			B: n.Switches[next(len(n.Switches))].Name, Gbit: 400, Count: 1})
	}
	for i := 0; at < len(script) && i < 30; i++ {
		n.Cables = append(n.Cables, Cable{A: end(), B: end(), Gbit: float64(next(5)) * 100,
			Latency: float64(next(3)), Count: 1 + next(3)})
	}
	return n, seed
}

// routeAll asks for the route between every two ports, and for the tree of all.
func routeAll(t *testing.T, fab *Fabric, nets []int) {
	r := fab.Router()
	for a := range 2 * len(nets) {
		for b := range 2 * len(nets) {
			src, dst := End{Host: a / 2, Net: a % 2}, End{Host: b / 2, Net: b % 2}
			ways, err := r.Route(nil, src, dst, uint64(a*b))
			var none *NoRouteError
			var bad *BindError
			if err != nil {
				if !errors.As(err, &none) && !errors.As(err, &bad) {
					t.Fatalf("%T %v", err, err)
				}
				continue
			}
			for i := 1; i < len(ways); i++ {
				if fab.Wires[ways[i-1]].To != fab.Wires[ways[i]].From {
					t.Fatalf("from %v to %v: wire %d does not begin where %d ends", src, dst, ways[i],
						ways[i-1])
				}
			}
		}
	}
	var ends []End
	for a := range 2 * len(nets) {
		ends = append(ends, End{Host: a / 2, Net: a % 2})
	}
	var apart *NoTreeError
	var none *NoRouteError
	var bad *BindError
	if _, err := r.Tree(ends); err != nil && !errors.As(err, &apart) && !errors.As(err, &none) &&
		!errors.As(err, &bad) {
		t.Fatalf("%T %v", err, err)
	}
}
