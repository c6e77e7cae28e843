package scenario

import (
	"strings"
	"sync"

	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/tuning/netplugin"
)

// classNamed is the class that is asked for, or that machines are on by their names; empty
// for files of either, and for machines that differ. isFile reports whether a name is
// that of a topology file.
func classNamed(asked string, machines []string, isFile func(name string) bool) string {
	if asked != "" {
		if isClassFile(asked) {
			return ""
		}
		return asked
	}
	kind := ""
	for i, name := range machines {
		if strings.ContainsAny(name, `/\`) || isFile(name) {
			return ""
		}
		m := builtin.Lookup(name)
		if m == nil || i > 0 && m.Network.Kind != kind {
			return ""
		}
		kind = m.Network.Kind
	}
	return kind
}

// isClassFile reports whether the name of a class is the path of a file.
func isClassFile(name string) bool { return strings.ContainsAny(name, "./") }

// classOf is the class of a node where no other is asked for; empty for InfiniBand and for
// sockets, which machine classes have.
func classOf(named string, s *topo.System) string {
	switch named {
	case "infiniband", "socket":
		return ""
	case "", "efa": // NICs and GPUs say it, or the generation
		return netplugin.Class(s)
	}
	return named
}

// machineClass is a machine class by name, or by the path of a file; of no name, that of a
// node, which is read when it is asked for.
func machineClass(name string, s *topo.System, read func(string) ([]byte, error)) (func() *gpu.Class, error) {
	var c gpu.Class
	var err error
	switch {
	case name == "":
		return sync.OnceValue(func() *gpu.Class {
			c := sim.ClassOf(s)
			return &c
		}), nil
	case isClassFile(name):
		var data []byte
		if data, err = read(name); err == nil {
			c, err = gpu.Parse(data, name)
		}
	default:
		c, err = gpu.Named(name)
	}
	return func() *gpu.Class { return &c }, err
}

// networkClass puts the quantities of a network class, by name or by the path of a file, in place
// of a machine class's; no name leaves them.
func networkClass(class func() *gpu.Class, name string, read func(string) ([]byte, error)) (func() *gpu.Class,
	error) {
	var n *gpu.NetworkClass
	var err error
	if name == "" {
		return class, nil
	}
	if isClassFile(name) {
		var data []byte
		if data, err = read(name); err == nil {
			n, err = gpu.ParseNetwork(data, name)
		}
	} else {
		n, err = gpu.NetworkNamed(name)
	}
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(func() *gpu.Class {
		c := n.On(*class())
		return &c
	}), nil
}
