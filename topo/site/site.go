// Package site reads what sites have of their networks: ibnetdiscover's output, Slurm's topology.conf
// and topology.yaml, LLDP neighbours as lldpcli prints them, tables of cables; and lists of hosts. Each
// reader makes a plan of named devices and cables, which Plan.Network writes as simccl's own fabric.
// It is pure. Errors are fail.FileErrors with line and column.
package site

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/topo/fabric"
)

// Limits of the input.
const (
	maxDevices = 1 << 20
	maxCables  = 1 << 21
	maxName    = 200
)

// Options supplies what the files do not state.
type Options struct {
	Gbit    float64 // of a cable whose speed no file says, Gbit/s
	Latency float64 // us that a cable between switches adds
	// Of Slurm's files, which name no ports: nets of a host, a leaf's ports to hosts over its uplinks.
	Nets    int
	Oversub float64
	// Hosts is a pattern of host names, for files that do not say which devices are hosts; "" derives it from
	// names and columns.
	Hosts string
	// GUIDs are the NICs of hosts whose topology files are given, by GUID.
	GUIDs map[uint64]NIC
}

// NIC is a port of a host: the names of the host and of the net.
type NIC struct{ Host, Net string }

// end is a port of a device. A port without a name is numbered in order.
type end struct{ device, port string }

// cable joins two ends; gbit is 0 where no file says it.
type cable struct {
	a, b  end
	gbit  float64
	count int
	file  string
	line  int
}

// role is the kind of a device: unknown, host or switch.
type role uint8

const (
	unknown role = iota
	isHost
	isSwitch
)

// Plan is a network by names, as files have it.
type Plan struct {
	cables  []cable
	roles   map[string]role
	order   []string       // devices by first appearance
	ports   map[string]int // of a switch, as its file says: 0 for as many as needed
	assumed []string
	files   []string
}

func newPlan() *Plan { return &Plan{roles: map[string]role{}, ports: map[string]int{}} }

// device records a device and its role. It fails on an invalid name, too many devices or a contradicting
// role.
func (p *Plan) device(name string, r role) error {
	was, ok := p.roles[name]
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("a device name of %d bytes: from 1 to %d", len(name), maxName)
	case !ok && len(p.order) == maxDevices:
		return fmt.Errorf("more than %d devices", maxDevices)
	case !ok:
		p.order = append(p.order, name)
	case was != unknown && r != unknown && was != r:
		return fmt.Errorf("%s is a host in one place and a switch in another", termtext.Short(name, 0))
	}
	p.roles[name] = max(was, r)
	return nil
}

// assume records an assumption, once.
func (p *Plan) assume(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.assumed, text) {
		p.assumed = append(p.assumed, text)
	}
}

// fault returns an error with the position in a file.
func fault(file string, line, col int, hint, format string, args ...any) error {
	return fail.At(file, line, col, fmt.Sprintf(format, args...), hint)
}

// Network converts a plan to a fabric: hosts are numbered in the order of their names, and the NICs of a host
// in the order of theirs, as NCCL numbers them. It also returns the assumptions made.
func (p *Plan) Network(o Options) (*fabric.Network, []string, error) {
	if err := p.settle(o); err != nil {
		return nil, nil, err
	}
	n := &fabric.Network{Name: strings.Join(p.files, ", "), Routing: fabric.ECMP}
	var hosts, switches []string
	for _, d := range p.order {
		if p.roles[d] == isHost {
			hosts = append(hosts, d)
		} else {
			switches = append(switches, d)
		}
	}
	slices.SortFunc(hosts, Natural)
	names := p.switchNames(switches)
	for _, s := range switches {
		n.Switches = append(n.Switches, fabric.Switch{Name: names[s], Radix: p.ports[s]})
	}
	nets, err := p.numberNets(hosts, n)
	if err != nil {
		return nil, nil, err
	}
	slow := 0
	text := func(e end) string {
		if p.roles[e.device] == isHost {
			return nets[e].String()
		}
		return names[e.device]
	}
	for _, c := range p.merged() {
		out := fabric.Cable{A: text(c.a), B: text(c.b), Gbit: c.gbit, Count: c.count}
		if p.roles[c.a.device] == isSwitch && p.roles[c.b.device] == isSwitch {
			out.Latency = o.Latency
		}
		if out.Gbit == 0 {
			out.Gbit, slow = o.Gbit, slow+c.count
		}
		n.Cables = append(n.Cables, out)
	}
	if slow > 0 {
		p.assume("%d of the cables have no speed here: %g Gbit/s each (--gbit)", slow, o.Gbit)
	}
	if len(switches) > 1 {
		p.assume("a cable between switches adds %g us, its switch included (--latency-us)", o.Latency)
	}
	p.assume("routing is ecmp; write adaptive or static into the file where switches do that")
	return n, p.assumed, nil
}

// switchNames maps each switch to a valid name for a fabric file: a name like node0/0 would denote a host
// port.
func (p *Plan) switchNames(switches []string) map[string]string {
	names := map[string]string{}
	for _, s := range switches {
		names[s] = s
		if _, host := fabric.ParseEnd(s); host {
			names[s] = "switch-" + s
		}
	}
	return names
}

// numberNets numbers hosts and their NICs, and notes both in the network.
func (p *Plan) numberNets(hosts []string, n *fabric.Network) (map[end]fabric.End, error) {
	ports := map[string][]string{}
	for i := range p.cables {
		for _, e := range []end{p.cables[i].a, p.cables[i].b} {
			if p.roles[e.device] != isHost {
				continue
			}
			if slices.Contains(ports[e.device], e.port) {
				c := &p.cables[i]
				return nil, fault(c.file, c.line, 1, "a port has one cable",
					"port %s of %s is cabled more than once", termtext.Quote(e.port, 0),
					termtext.Short(e.device, 0))
			}
			ports[e.device] = append(ports[e.device], e.port)
		}
	}
	// A NIC that most hosts have keeps its place on a host that lacks it.
	seen := map[string]int{}
	for _, h := range hosts {
		for _, port := range ports[h] {
			seen[port]++
		}
	}
	out := map[end]fabric.End{}
	for i, h := range hosts {
		list := ports[h]
		for port, k := range seen { //lint:sorted sorted below
			if 2*k > len(hosts) && !slices.Contains(list, port) {
				list = append(list, port)
			}
		}
		slices.SortFunc(list, Natural)
		for k, port := range list {
			out[end{h, port}] = fabric.End{Host: i, Net: k}
		}
		n.Hosts = append(n.Hosts, fabric.Host{Name: h, Nets: list})
	}
	return out, nil
}

// merged joins cables of the same switches and speed, in order of appearance.
func (p *Plan) merged() []cable {
	at := map[[2]string]map[float64]int{}
	var out []cable
	for _, c := range p.cables {
		if p.roles[c.a.device] == isHost || p.roles[c.b.device] == isHost {
			if p.roles[c.a.device] == isSwitch {
				c.a, c.b = c.b, c.a
			}
			out = append(out, c)
			continue
		}
		key := [2]string{c.a.device, c.b.device}
		if other := [2]string{key[1], key[0]}; at[other] != nil {
			key = other
		}
		if i, ok := at[key][c.gbit]; ok {
			out[i].count += c.count
			continue
		}
		if at[key] == nil {
			at[key] = map[float64]int{}
		}
		at[key][c.gbit] = len(out)
		out = append(out, c)
	}
	return out
}

// Natural compares names with their numbers as numbers: node2 comes before node10.
func Natural(a, b string) int {
	digits := func(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
	for x, y := a, b; ; {
		n, m := digits(x), digits(y)
		if n > 0 && m > 0 {
			u, v := strings.TrimLeft(x[:n], "0"), strings.TrimLeft(y[:m], "0")
			if c := cmp.Or(cmp.Compare(len(u), len(v)), cmp.Compare(u, v)); c != 0 {
				return c
			}
			x, y = x[n:], y[m:]
			continue
		}
		if x == "" || y == "" || x[0] != y[0] {
			return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
		}
		x, y = x[1:], y[1:]
	}
}

// even adds the cables for files without ports: each host has o.Nets ports on its leaf; the uplinks of a leaf
// carry the bandwidth below it divided by the oversubscription, in equal parts to the switches above.
func (p *Plan) even(below map[string][]string, above map[string][]string, o Options, file string,
	line map[string]int) {
	var carry func(s string, depth int) float64
	carry = func(s string, depth int) float64 {
		if p.roles[s] == isHost {
			return float64(o.Nets) * o.Gbit
		}
		sum := 0.0
		for _, c := range below[s] {
			if depth < 64 {
				sum += carry(c, depth+1) / float64(max(1, len(above[c])))
			}
		}
		return sum
	}
	for _, s := range p.order {
		for _, up := range above[s] {
			if p.roles[s] == isHost {
				for k := range o.Nets {
					p.cables = append(p.cables, cable{a: end{s, fmt.Sprintf("net%d", k)}, b: end{device: up},
						gbit: o.Gbit, count: 1, file: file, line: line[s]})
				}
				continue
			}
			gbit := carry(s, 0) / o.Oversub / float64(len(above[s]))
			count := max(1, int(math.Ceil(gbit/o.Gbit*(1-1e-9))))
			p.cables = append(p.cables, cable{a: end{device: s}, b: end{device: up},
				gbit:  gbit / float64(count),
				count: count, file: file, line: line[s]})
		}
	}
}
