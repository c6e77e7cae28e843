package scenario

import (
	"fmt"

	"github.com/simccl/simccl/sim/netpreset"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/site"
	"github.com/simccl/simccl/workload/inputs"
)

// maxHostList is the largest list of hosts that is read.
const maxHostList = 16 << 20

// hosts reads the list of the job's hosts, in the order of ranks; nil where the Spec names none.
// One entry of nodes without a number has as many.
func (l *loader) hosts(members []fabric.Member) ([]string, error) {
	name := l.spec.Network.Hosts
	if name == "" {
		return nil, nil
	}
	if f := l.spec.Network.Fabric; f == "" || netpreset.Named(f) {
		return nil, &FieldError{Path: "network.hosts", Value: name,
			Problem: "hosts are those of a fabric file",
			Hint:    "add network.fabric"}
	}
	domain := l.spec.Machine.NVLinkDomain
	for i := range l.sources {
		if l.spec.Machine.NVLinkDomain == 0 {
			domain = max(domain, l.sources[i].domain)
		}
	}
	if domain > 1 { // a node of the network is a whole domain then, and a list names trays
		return nil, &FieldError{Path: "network.hosts", Value: name,
			Problem: fmt.Sprintf("the machine has NVLink domains of %d hosts, which a list does not place",
				domain),
			Hint: "leave network.hosts out, or take machine.nvlinkDomain 1"}
	}
	data, err := l.opt.ReadAs(name, maxHostList, inputs.HostList, inputs.KubernetesNodes)
	if err != nil {
		return nil, bad(err)
	}
	list, err := site.Hosts(data, name)
	if err != nil {
		return nil, bad(err)
	}
	if n := l.spec.Machine.Nodes; len(members) == 1 && (len(n) == 0 || n[0].Count == 0) {
		members[0].Count = len(list)
	}
	total := 0
	for _, m := range members {
		total += m.Count
	}
	if total != len(list) {
		return nil, &FieldError{Path: "network.hosts", Value: name,
			Problem: fmt.Sprintf("%d hosts are listed and the machine has %d", len(list), total),
			Hint:    "leave machine.nodes without a number, or list as many"}
	}
	return list, nil
}

// place puts the job on its hosts of the network.
func (l *loader) place(hosts []string) error {
	if hosts == nil {
		return nil
	}
	placed, err := l.site.Network.Place(hosts)
	if err != nil {
		return bad(fmt.Errorf("%s: %w", l.spec.Network.Hosts, err))
	}
	l.site.Network = placed
	return nil
}
