package scenario

import (
	"path"
	"strings"

	"github.com/simccl/simccl/internal/netplugin"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/tuning"
)

// networkNamed is the network class that the Spec names, or that its machines, by
// name, are on; empty where files describe them, or where they differ.
func (l *loader) networkNamed() string {
	if c := l.spec.Network.Class; c != "" {
		if isFile(c) {
			return ""
		}
		return c
	}
	kind := ""
	for i, n := range l.spec.Machine.Nodes {
		m := l.machine(n.Topo)
		if m == nil || i > 0 && m.Network.Kind != kind {
			return ""
		}
		kind = m.Network.Kind
	}
	return kind
}

// machine is the built-in machine of a name that no file has; nil for none.
func (l *loader) machine(name string) *builtin.Machine {
	m := builtin.Lookup(name)
	if m == nil || strings.ContainsAny(name, `/\`) {
		return nil
	}
	if _, err := l.opt.read(name, maxTopology); err == nil {
		return nil // a file of that name goes before
	}
	return m
}

// isFile reports whether the name of a class is the path of a file.
func isFile(name string) bool { return strings.ContainsAny(name, `./\`) }

// plugin adds what the plugin of the named network sets where the user sets nothing.
func (l *loader) plugin() {
	if p := netplugin.Of(l.networkNamed()); p != nil {
		l.opt.Settings.Plugin, l.opt.Settings.PluginName = p.Settings, p.Name
		l.site.plugin = p.Name
	}
}

// pluginTuner is the tuner that comes with the plugin of the named network; nil without
// one, and where the user names another.
func (l *loader) pluginTuner() *tuning.Plugin {
	if l.site.plugin == "" || l.site.Config.Text("NCCL_TUNER_PLUGIN").Set {
		return nil
	}
	cl := l.site.Cluster
	return netplugin.Tuner(l.networkNamed(), cl.NRanks(), cl.NHosts(), netplugin.SM(cl.Locate(0).System))
}

// networkClass puts the quantities of the network in place of the machine class's. A
// file of a machine class says itself what its NICs cost.
func (l *loader) networkClass() error {
	name := l.spec.Network.Class
	if name == "" && !l.site.measured {
		if name = l.networkNamed(); name == "" {
			name = netplugin.Class(l.site.Cluster.Locate(0).System)
		}
		if name == "efa" { // of no generation: NICs and GPUs say it
			name = netplugin.Class(l.site.Cluster.Locate(0).System)
		}
		if name == "infiniband" || name == "socket" {
			return nil // that is what machine classes have
		}
	}
	if name == "" {
		return nil
	}
	n, err := l.readNetwork(name)
	if err == nil {
		l.site.Class = n.On(l.site.Class)
	}
	return err
}

func (l *loader) readNetwork(name string) (*gpu.NetworkClass, error) {
	if !isFile(name) {
		n, err := gpu.NetworkNamed(name)
		if err != nil {
			return nil, &FieldError{Path: "network.class", Value: name, Problem: err.Error(), Hint: "a file is written with its path, ./" + path.Base(name)}
		}
		return n, nil
	}
	data, err := l.opt.read(name, maxClass)
	if err != nil {
		return nil, err
	}
	n, err := gpu.ParseNetwork(data, name)
	if err != nil {
		return nil, bad(err)
	}
	return n, nil
}
