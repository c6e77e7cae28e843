package topo

import (
	"github.com/simccl/simccl/internal/iflist"
	"github.com/simccl/simccl/topo/internal/view"
)

// verbs lists the nets of Specs that NCCL's IB plugin reports.
func verbs(specs []*Spec) (all []iflist.Device) {
	for _, s := range specs {
		if s == nil || s.Root == nil {
			continue
		}
		for _, e := range s.Root.Clone().SetParents().All("net") {
			if view.PluginOf(e) == view.Verbs {
				name, _ := e.Get("name")
				all = append(all, iflist.Device{Name: name, Port: e.Int("port", -1)})
			}
		}
	}
	return all
}

// UnmatchedHCAs returns the entries of an NCCL_IB_HCA list ("^mlx5_1", "=mlx5_2:1") that match no net of
// NCCL's IB plugin in the Specs, and the names of those nets. It returns no entries if all match, and all
// entries if there are no such nets.
func UnmatchedHCAs(specs []*Spec, list string) (entries, nets []string) {
	return iflist.Unmatched(list, verbs(specs))
}

// HCAs lists the nets of Specs that NCCL's IB plugin reports, by name, and how many of
// them a NCCL_IB_HCA list allows.
func HCAs(specs []*Spec, list string) (nets []string, allowed int) {
	for _, d := range verbs(specs) {
		nets = append(nets, d.Name)
		if view.Allowed(list, d.Name, d.Port) {
			allowed++
		}
	}
	return nets, allowed
}

// UnmatchedInterfaces lists the entries of a NCCL_SOCKET_IFNAME list that match
// no interface of sockets among the Systems' nets, and the names of those that
// are there.
func UnmatchedInterfaces(systems []*System, list string) (entries, nets []string) {
	var all []iflist.Device
	for _, s := range systems {
		for _, n := range s.Of(NET) {
			if net := s.Nodes[n].Net; net.Sockets {
				all = append(all, iflist.Device{Name: net.Name, Port: -1})
			}
		}
	}
	if len(all) == 0 { // the list is for NCCL's own connections, which are no part of the machine
		return nil, nil
	}
	return iflist.Unmatched(list, all)
}
