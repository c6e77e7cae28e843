package packetrun

import (
	"errors"
	"fmt"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/packet"
	engine "github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/netpreset"
	layout "github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// Fabric runs traffic over the network of a fabric file. Each port of a host is a node that sends and
// receives; its flows cross nothing within hosts. Settings are the file's member packets, as for collectives.
func Fabric(file string, o Options) (*Report, error) {
	if o.Kind == "" {
		return nil, fail.Usage("{Fabric}: a fabric file has no flows: add {Kind} " + Kinds)
	}
	data, err := o.Read(file)
	if err != nil {
		return nil, fail.Input(err)
	}
	net, err := layout.ParseNetwork(data, file)
	if err != nil {
		return nil, fail.Input(err)
	}
	set, err := netpreset.Of(net, netpreset.Choice{Model: "packet", CC: o.CC}, o.Seed, engine.Reliability{})
	var p *layout.PacketsError
	switch {
	case errors.As(err, &p) && o.CC != "":
		return nil, fail.Usage("{CC}: %s", p.Problem)
	case errors.As(err, &p):
		return nil, fail.Input(net.Placed(data, file, p))
	case err != nil:
		return nil, err
	}
	c := set.Config
	if c.Routing.Balance == packet.Hashed && net.Routing != layout.ECMP {
		return nil, fail.NotYet("flows are hashed onto routes there", "routing %q of %s", net.Routing, file)
	}
	n, names := nodes(net, set.Hop)
	c.Frames.First, c.Frames.Last, c.Marking = 0, 0, c.MarksOf(n)
	if err := o.mark(n, &c); err != nil {
		return nil, err
	}
	flows, err := o.generate(n, 0, o.Seed)
	if err != nil {
		return nil, err
	}
	number := map[string]int{}
	for i, name := range names {
		number[name] = i
	}
	err = o.faults(n, flows, func(name string) int {
		if i, known := number[name]; known {
			return i
		}
		return -1
	}, &c)
	if err != nil {
		return nil, err
	}
	r, err := run(n, flows, &c, 0, o)
	if err != nil {
		return nil, err
	}
	r.Model, r.Nodes = fmt.Sprintf("%s, %s", model(net, &c), c.CC.Kind), names
	if o.CC != "" {
		r.Model = fmt.Sprintf("%s, %s", model(net, &c), o.CC)
	}
	return r, nil
}

// model names the simulated network and link layer.
func model(n *layout.Network, c *packet.Config) string {
	link := "RoCEv2 on Ethernet"
	if c.Buffer.Credits > 0 {
		link = "InfiniBand"
	}
	return strings.TrimPrefix(n.Name+", "+link, ", ")
}

// nodes converts a fabric to a network whose nodes are host ports, in the order of cables, then switches, and
// returns their names. A cable between switches has its own latency if the file states one; other cables have
// hop.
func nodes(net *layout.Network, hop units.Time) (*packet.Network, []string) {
	var names []string
	number := map[string]int32{}
	add := func(name string) {
		if _, known := number[name]; !known {
			number[name] = int32(len(names))
			names = append(names, name)
		}
	}
	for _, c := range net.Cables {
		for _, name := range []string{c.A, c.B} {
			if _, is := layout.ParseEnd(name); is {
				add(name)
			}
		}
	}
	hosts := len(names)
	for _, s := range net.Switches {
		add(s.Name)
	}
	n := &packet.Network{Nodes: len(names), Switch: make([]bool, len(names))}
	for i := hosts; i < len(names); i++ {
		n.Switch[i] = true
	}
	for _, c := range net.Cables {
		x := packet.Cable{A: number[c.A], B: number[c.B], Rate: int64(c.Gbit * 1e9), Delay: hop}
		if n.Switch[x.A] && n.Switch[x.B] && c.Latency > 0 {
			x.Delay = units.FromMicros(c.Latency)
		}
		for range max(1, c.Count) {
			n.Cables = append(n.Cables, x)
		}
	}
	return n, names
}
