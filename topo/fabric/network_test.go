package fabric

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNetworkErrorsHavePlaces(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{``, `f.json:1:1: a fabric file is one JSON object`},
		{`{"switches": 3}`, `f.json:1:14: a list`},
		{"{\n \"switch\": []}", `f.json:2:2: unknown member "switch"; known are`},
		{"{\"routing\": \"best\"}", `f.json:1:13: routing "best"; write ecmp, adaptive or static`},
		{"{\"switches\": [\n  {\"name\": \"a\"},\n  {\"name\": \"a\"}]}",
			`f.json:3:3: there are two switches a`},
		{"{\"switches\": [{\"name\": \"a\", \"radix\": \"x\"}]}",
			`f.json:1:15: radix: string where a whole number is expected`},
		{"{\"switches\": [\"a\"]}", `f.json:1:15: string where an object { … } is expected`},
		{"{\"switches\": [{\"nam\": \"a\"}]}", `f.json:1:15: unknown member "nam"`},
		{"{\"switches\": [{\"name\": \"a\"}], \"cables\": [\n" +
			"{\"a\": \"node0/0\", \"b\": \"b\", \"gbit\": 400}]}", `f.json:2:1: no switch "b"; declare it`},
		{"{\"switches\": [{\"name\": \"a\"}], \"cables\": [{\"a\": \"node0/0\", \"b\": \"a\"}]}",
			`f.json:1:42: cable node0/0 to a of 0 Gbit/s`},
		{"{\"switches\": [{\"name\": \"a\", \"radix\": 1}], \"cables\": [{\"a\": \"node0/0\", \"b\": " +
			"\"a\", \"gbit\": 1},{\"a\": \"node0/1\", \"b\": \"a\", \"gbit\": 1}]}",
			`f.json:1:15: switch a has 1 ports and 2 cables`},
		{"{\"cables\": [", `f.json:1:13: the file ends too early`},
		{"{} {}", `f.json:1:4: something follows`},
	} {
		_, err := ParseNetwork([]byte(tt.file), "f.json")
		var f *FormatError
		if !errors.As(err, &f) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s\n got %v\nwant %s", tt.file, err, tt.want)
		}
	}
}

// What no network has is refused, and nothing is written of it.
func TestLayoutsThatCannotBe(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tt := range []struct {
		change func(l *Layout)
		want   string
	}{
		{func(l *Layout) { l.Gbit = nan }, "NaN Gbit/s"},
		{func(l *Layout) { l.Gbit = inf }, "+Inf Gbit/s"},
		{func(l *Layout) { l.Gbit = 2e6 }, "2e+06 Gbit/s"},
		{func(l *Layout) { l.Oversub = nan }, "oversubscription NaN"},
		{func(l *Layout) { l.Oversub = -1 }, "oversubscription -1"},
		{func(l *Layout) { l.Latency = inf }, "latency +Inf us"},
		{func(l *Layout) { l.Hosts = 1 << 40 }, "at most 4194304 ports"},
		{func(l *Layout) { l.Radix = 9 }, "leaf0 needs more than its 9 ports"},
	} {
		l := Layout{Kind: "leaf-spine", Hosts: 4, Nets: 8, Gbit: 400, PerLeaf: 1}
		tt.change(&l)
		n, err := Generate(l)
		var bad *LayoutError
		if n != nil || !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// No cable is faster than a port: few spines get several side by side, and a
// switch has a port for each.
func TestCablesSideBySide(t *testing.T) {
	n, err := Generate(Layout{Kind: "leaf-spine", Hosts: 4, Nets: 8, Gbit: 400, PerLeaf: 2, Spines: 2,
		Radix: 32})
	if err != nil {
		t.Fatal(err)
	}
	up := 0.0
	for _, c := range n.Cables {
		if c.Gbit > 400 {
			t.Errorf("a cable of %g Gbit/s", c.Gbit)
		}
		if c.A == "leaf0" {
			up += c.Gbit * float64(c.Count)
		}
	}
	if up != 16*400 {
		t.Errorf("leaf0 has %g Gbit/s up for 6400 down", up)
	}
	if _, err := ParseNetwork(n.Format(), "generated"); err != nil {
		t.Error(err)
	}
}

func drawLayout(t *rapid.T) Layout {
	nets := rapid.IntRange(2, 8).Draw(t, "nets")
	return Layout{Kind: rapid.SampledFrom([]string{"leaf-spine", "rail", "fat-tree", "planes"}).Draw(t,
		"kind"),
		Hosts: rapid.IntRange(1, 9).Draw(t, "hosts"), Nets: nets, Gbit: 400,
		PerLeaf: rapid.IntRange(1, 4).Draw(t, "per leaf"),
		Spines:  rapid.IntRange(0, 5).Draw(t, "spines"), Planes: rapid.IntRange(2, nets).Draw(t, "planes"),
		Oversub: rapid.SampledFrom([]float64{1, 2, 3}).Draw(t, "oversub"), Latency: 0.3,
		Routing: rapid.SampledFrom([]Routing{ECMP, Adaptive, Static}).Draw(t, "routing")}
}

func bind(t *rapid.T, l Layout, seed uint64) *Fabric {
	n, err := Generate(l)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseNetwork(n.Format(), "generated")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := string(n.Format()), string(again.Format()); a != b {
		t.Fatalf("written and read again it differs:\n%s\n%s", a, b)
	}
	nets := make([]int, l.Hosts)
	for i := range nets {
		nets[i] = l.Nets
	}
	f, err := again.Bind(nets, seed)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Whatever is generated can be read again, and its ways lead from port to port
// without passing a host.
func TestRoutesLeadToTheirPort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		f := bind(t, l, rapid.Uint64().Draw(t, "seed"))
		r := f.Router()
		for a := range l.Hosts {
			for b := range l.Hosts {
				net := rapid.IntRange(0, l.Nets-1).Draw(t, "net")
				ways, err := r.Route(nil, End{Host: a, Net: net}, End{Host: b, Net: net}, uint64(a))
				if err != nil {
					t.Fatal(err)
				}
				at := f.first[a] + int32(net)
				for i, w := range ways {
					if f.Wires[w].From != at {
						t.Fatalf("%v is no way", ways)
					}
					if at = f.Wires[w].To; at < f.first[len(f.first)-1] && i < len(ways)-1 {
						t.Fatalf("%v passes a host", ways)
					}
				}
				if at != f.first[b]+int32(net) {
					t.Fatalf("%v ends elsewhere", ways)
				}
			}
		}
	})
}

// A seed changes which spine a queue pair takes, and nothing else: ways stay
// equally long, and over many queue pairs spines are used equally.
func TestSeedsOnlyPermute(t *testing.T) {
	for seed := range uint64(4) {
		n, err := Generate(Layout{Kind: "rail", Hosts: 2, Nets: 2, Gbit: 400, PerLeaf: 1, Spines: 4})
		if err != nil {
			t.Fatal(err)
		}
		f, err := n.Bind([]int{2, 2}, seed)
		if err != nil {
			t.Fatal(err)
		}
		r := f.Router()
		used := map[int32]int{}
		const flows = 4000
		for q := range uint64(flows) {
			w, err := r.Route(nil, End{}, End{Host: 1}, q)
			if err != nil || len(w) != 4 {
				t.Fatalf("way %v, %v; want four wires", w, err)
			}
			used[w[1]]++
		}
		if len(used) != 4 {
			t.Fatalf("%d uplinks used, want 4", len(used))
		}
		for w, k := range used {
			if k < flows/4*9/10 || k > flows/4*11/10 {
				t.Errorf("seed %d: %s carries %d of %d", seed, f.Wires[w].Name, k, flows)
			}
		}
	}
}

// Known of ECMP: of m flows over n equal ways the fullest has more than m/n;
// adaptive placement spreads them evenly.
func TestCollisions(t *testing.T) {
	worst := func(routing Routing) int {
		n, _ := Generate(Layout{Kind: "leaf-spine", Hosts: 2, Nets: 8, Gbit: 400, PerLeaf: 1, Spines: 8,
			Routing: routing})
		f, err := n.Bind([]int{8, 8}, 1)
		if err != nil {
			t.Fatal(err)
		}
		r, on := f.Router(), map[int32]int{}
		for net := range 8 {
			w, _ := r.Route(nil, End{Net: net}, End{Host: 1, Net: net}, uint64(net))
			on[w[1]]++
		}
		most := 0
		for _, k := range on {
			most = max(most, k)
		}
		return most
	}
	if a, e := worst(Adaptive), worst(ECMP); a != 1 || e < 2 {
		t.Fatalf("adaptive puts %d on one uplink, ECMP %d; want 1 and more", a, e)
	}
}

// Flows hashed over as many uplinks leave (1-1/n)^n of them empty, 1/e for many:
// what ECMP gets of a bisection under a permutation, and the reason why fabrics
// schedule flows (Al-Fares et al., Hedera, NSDI 2010, measure 61 %). The fullest
// uplink holds as many flows as balls fall into the fullest bin (Raab and
// Steger, "Balls into bins", 1998): 3 to 4 of 32.
func TestCollisionsAreBallsIntoBins(t *testing.T) {
	const uplinks, seeds = 32, 200
	n, err := Generate(Layout{Kind: "leaf-spine", Hosts: 2, Nets: uplinks, Gbit: 400, PerLeaf: 1,
		Spines: uplinks})
	if err != nil {
		t.Fatal(err)
	}
	used, fullest := 0.0, 0.0
	for seed := range uint64(seeds) {
		f, err := n.Bind([]int{uplinks, uplinks}, seed)
		if err != nil {
			t.Fatal(err)
		}
		r, on, most := f.Router(), map[int32]int{}, 0
		for net := range uplinks {
			w, err := r.Route(nil, End{Net: net}, End{Host: 1, Net: net}, uint64(net))
			if err != nil {
				t.Fatal(err)
			}
			on[w[1]]++
			most = max(most, on[w[1]])
		}
		used += float64(len(on)) / uplinks / seeds
		fullest += float64(most) / seeds
	}
	want := 1 - math.Pow(1-1.0/uplinks, uplinks)
	if math.Abs(used-want) > 0.015 {
		t.Errorf("%.3f of the uplinks are used, balls into bins say %.3f", used, want)
	}
	if fullest < 3 || fullest > 4 {
		t.Errorf("the fullest uplink has %.2f flows in the mean, balls into bins say 3 to 4", fullest)
	}
}

// A link that is down is bypassed; without another route the ports are separated.
func TestDownLinks(t *testing.T) {
	n, _ := Generate(Layout{Kind: "rail", Hosts: 2, Nets: 1, Gbit: 400, PerLeaf: 1, Spines: 2})
	f, err := n.Bind([]int{1, 1}, 7)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 2 {
		if got := f.Degrade("leaf0", fmt.Sprintf("spine%d", k), 0, 0); got != 2 {
			t.Fatalf("%d wires, want both directions", got)
		}
		for q := range uint64(20) {
			_, err := f.Router().Route(nil, End{}, End{Host: 1}, q)
			var none *NoRouteError
			if lost := errors.As(err, &none); lost != (k == 1) {
				t.Fatalf("with %d links down: %v", k+1, err)
			}
		}
	}
}

// TestBoundsOfAFile: a few bytes must not declare gigabytes of wires.
func TestBoundsOfAFile(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"switches":[{"name":"a"},{"name":"b"}],"cables":[`)
	for i := range 33 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"a":"a","b":"b","gbit":1,"count":65536}`)
	}
	for text, want := range map[string]string{
		b.String() + "]}": "more than 2097152 cables",
		`{"switches":[{"name":"` + strings.Repeat("x", 300) +
			`"}]}`: "a switch name of 300 bytes",
		`{"routing":"` + strings.Repeat("x", 1<<20) + `"}`: "(1048576 bytes)",
		`{"switches":[{"name":"a","radix":1` + strings.Repeat("0", 1<<20) +
			`}]}`: "where a whole number is expected",
	} {
		_, err := ParseNetwork([]byte(text), "f")
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 2000 {
			t.Errorf("want %q, got %.300v", want, err)
		}
	}
}

func FuzzNetwork(f *testing.F) {
	n, _ := Generate(Layout{Kind: "rail", Hosts: 2, Nets: 2, Gbit: 400, PerLeaf: 1, Spines: 2})
	f.Add(n.Format())
	f.Add([]byte(
		`{"switches": [{"name": "a"}], "cables": [{"a": "node0/0", "b": "a", "gbit": 1, "count": 2}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := ParseNetwork(data, "f")
		if (n == nil) != (err != nil) {
			t.Fatalf("network %v with error %v", n, err)
		}
		if err != nil {
			return
		}
		again, err := ParseNetwork(n.Format(), "g")
		if err != nil || string(again.Format()) != string(n.Format()) {
			t.Fatalf("write and read differ: %v", err)
		}
	})
}

// Ports of a fused net have cables and ways of their own, or share their net's;
// never both.
func TestPortsOfFusedNets(t *testing.T) {
	n, err := Generate(Layout{Kind: "planes", Hosts: 4, Nets: 2, Ports: 2, Planes: 2, PerLeaf: 2, Gbit: 200})
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseNetwork(n.Format(), "again")
	if err != nil {
		t.Fatal(err)
	}
	f, err := again.Bind([]int{2, 2, 2, 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := f.Router()
	for port := 1; port <= 2; port++ {
		ways, err := r.Route(nil, End{Host: 0, Net: 1, Port: port}, End{Host: 3, Net: 1, Port: port}, 7)
		if err != nil || len(ways) != 4 {
			t.Fatalf("port %d: %v over %d wires, want leaf, spine, leaf", port, err, len(ways))
		}
		for _, w := range ways {
			if plane := fmt.Sprintf("plane%d-", port-1); !strings.Contains(f.Wires[w].Name, plane) {
				t.Errorf("port %d takes %s, not through %s", port, f.Wires[w].Name, plane)
			}
		}
	}
	if _, err := r.Route(nil, End{Port: 1}, End{Host: 1, Port: 2}, 7); err == nil {
		t.Error("planes have a way from one to the other")
	}
	var bad *BindError
	if _, err := r.Route(nil, End{}, End{Host: 1}, 7); !errors.As(err, &bad) {
		t.Errorf("a net that is cabled port by port: %v", err)
	}
	for text, want := range map[string]string{
		`{"switches":[{"name":"s"}],"cables":[{"a":"node0/0","b":"s","gbit":1},{"a":"node0/0.1","b":"s","gbit":1}]}`: "port by port",
		`{"switches":[{"name":"s"}],"cables":[{"a":"node1/0.1","b":"s","gbit":1}]}`:                                  "has no cable",
	} {
		n, err := ParseNetwork([]byte(text), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Bind([]int{1}, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, end := range []string{"node0/0.0", "node0/0.01", "node0/0.", "node0/0.1.1", "node0/-1.1"} {
		if _, ok := ParseEnd(end); ok {
			t.Errorf("%s is read as a port", end)
		}
	}
}
