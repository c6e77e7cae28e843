package netpreset

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/fabric"
)

// Named says whether a fabric is a preset by name and no file.
func Named(name string) bool {
	_, err := find(name)
	return name != "" && err == nil
}

// Names lists the presets.
func Names() string {
	var out []string
	for _, p := range Presets() {
		out = append(out, p.Name)
	}
	return strings.Join(out, ", ")
}

// Nowhere is the error of reading a fabric that is no preset: where its name could be
// one, it says which there are.
func Nowhere(name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(name, `/\.`) {
		return err
	}
	return fmt.Errorf("%w, nor a network by name: %s", err, Names())
}

// Build lays a preset's network out for the hosts of a cluster, all ports of which
// are equal, without oversubscription.
func Build(name string, cl *fabric.Cluster) (*fabric.Network, error) {
	p, err := find(name)
	if err != nil {
		return nil, err
	}
	l := fabric.Layout{Kind: p.Layout, Hosts: cl.NHosts(), PerLeaf: min(p.PerLeaf, cl.NHosts()), Latency: 0.3,
		Routing: p.Routing}
	for _, host := range speeds(cl) {
		for _, ports := range host {
			for _, gbit := range ports {
				if l.Gbit == 0 {
					l.Gbit, l.Nets, l.Ports = gbit, len(host), len(ports)
				}
				if gbit != l.Gbit || len(host) != l.Nets || len(ports) != l.Ports {
					return nil,
						fail.Usage("--fabric %s: is for hosts with equal ports; topo fabric writes a file "+
							"to edit", name)
				}
			}
		}
	}
	if l.Nets == 0 {
		return nil, fail.Usage("--fabric %s: the nodes have no NIC", name)
	}
	if l.Kind == "planes" {
		if l.Nets < 2 {
			return nil,
				fail.Usage("--fabric %s: has 2 planes, and a node needs a NIC for each; these nodes have 1",
					name)
		}
		l.Planes = 2
	}
	n, err := fabric.Generate(l)
	if err != nil {
		return nil, fmt.Errorf("--fabric %s: %w", name, err)
	}
	n.Name, n.Packets = name, &fabric.Packets{Preset: name}
	return n, nil
}
