package host

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/real/internal/transport"
)

// NIC is a NIC of a plan's topology, identified by the names of its ports: one, or several that are fused.
type NIC struct{ Ports []string }

// Assign returns the transport's device for each NIC. If the transport has all of the ports, they are matched
// by name, and several ports become one fused device; otherwise, with another machine's topology, named is
// false, and NICs are assigned to the devices round-robin.
func Assign(n transport.Net, nics []NIC) (out []int, named bool, err error) {
	devs, err := n.Devices()
	if err != nil {
		return nil, false, err
	}
	index := func(port string) int {
		return slices.IndexFunc(devs, func(d transport.Properties) bool { return d.Name == port })
	}
	fuser, fuses := n.(interface {
		Fuse(devs ...int) (int, error)
	})
	out = make([]int, len(nics))
	made := map[string]int{}
	for i, c := range nics {
		var ports []int
		for _, name := range c.Ports {
			ports = append(ports, index(name))
		}
		all := strings.Join(c.Ports, "+")
		dev, known := made[all]
		switch {
		case known:
			out[i] = dev
		case len(ports) == 0 || slices.Contains(ports, -1) || len(ports) > 1 && !fuses:
			return deal(len(nics), len(devs)), false, nil
		case len(ports) == 1:
			out[i] = ports[0]
		default:
			if out[i], err = fuser.Fuse(ports...); err != nil {
				return nil, false, err
			}
			made[all] = out[i]
		}
	}
	return out, true, nil
}

func deal(nics, devs int) []int {
	out := make([]int, nics)
	for i := range out {
		out[i] = i % devs
	}
	return out
}
