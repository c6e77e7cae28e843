package fabric

import (
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/units"
)

// member is a Member with the number of GPUs that are used of it.
type member struct {
	Member
	gpus units.Opt[int]
}

// whole makes one member of each Spec, without splitting Specs of several hosts.
func whole(members []Member, p topo.Params) []member {
	out := make([]member, len(members))
	for i, m := range members {
		out[i] = member{m, p.GPUs}
	}
	return out
}

// withoutFabric returns the name of the first host without an NVLink fabric if the communicator also contains
// a multi-host domain; else "".
func withoutFabric(members []Member) string {
	name, domain := "", false
	for _, m := range members {
		switch {
		case m.Count < 1:
		case len(decl.Hosts(m.Spec)) > 1:
			domain = true
		case !m.Fabric && name == "":
			name = m.Spec.Name
		}
	}
	if !domain {
		return ""
	}
	return name
}

// apart replaces every NVLink domain by its hosts (NCCL_MNNVL_ENABLE=0). A limit on GPUs is filled host by
// host: -g 6 of two hosts with 4 each uses 4 and 2.
func apart(members []Member, p topo.Params) ([]member, error) {
	var out []member
	for _, m := range members {
		hosts := decl.Hosts(m.Spec)
		if len(hosts) == 1 || m.Count < 1 {
			out = append(out, member{m, p.GPUs})
			continue
		}
		if _, err := topo.CountGPUs(m.Spec, &p); err != nil {
			return nil, err
		}
		gpus, left := make([]units.Opt[int], len(hosts)), p.GPUs
		for i, h := range hosts {
			n, err := topo.CountGPUs(h, &topo.Params{})
			if err != nil {
				return nil, err
			}
			if left.Set {
				gpus[i] = units.Some(min(n, left.Value))
				left.Value -= gpus[i].Value
			}
		}
		for range m.Count {
			for i, h := range hosts {
				if !gpus[i].Set || gpus[i].Value > 0 {
					out = append(out, member{Member{Spec: h, Count: 1}, gpus[i]})
				}
			}
		}
	}
	return out, nil
}
