package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/scenario"
)

// Command is the command line of simccl that runs a Spec of the page.
func Command(s *scenario.Spec) string {
	words := []string{"simccl", "run", s.Workload.Op}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, quote(value))
		}
	}
	number := func(flag string, value int64) {
		if value != 0 {
			words = append(words, flag, fmt.Sprint(value))
		}
	}
	if s.Workload.Job != "" {
		words = []string{"simccl", "replay", quote(s.Workload.Job)}
	}
	m := &s.Machine
	switch {
	case len(m.Nodes) == 1:
		add("--topo", m.Nodes[0].Topo)
		number("--nodes", int64(m.Nodes[0].Count))
	case len(m.Nodes) > 1:
		var list []string
		for _, n := range m.Nodes {
			list = append(list, fmt.Sprintf("%s:%d", n.Topo, max(n.Count, 1)))
		}
		add("--topo", strings.Join(list, ","))
	}
	number("-g", int64(m.GPUs))
	add("--multicast", m.Multicast)
	number("--mnnvl", int64(m.NVLinkDomain))
	add("--machine-class", m.Class)
	if v, ok := strings.CutPrefix(s.NCCL.Version, "rccl-"); ok {
		add("--rccl-version", v)
	} else {
		add("--nccl-version", s.NCCL.Version)
	}
	network(&s.Network, add)
	if s.Workload.Job == "" {
		workload(&s.Workload, add, number)
	}
	e := &s.Engine
	add("--fidelity", e.Fidelity)
	add("--fold", e.Fold)
	add("--skip", e.Skip)
	add("--jitter", e.Jitter)
	add("--launch", e.Launch)
	number("--procs", int64(e.Processes))
	number("-t", int64(e.Threads))
	number("-z", int64(e.Blocking))
	if s.Seed > 0 {
		add("--seed", fmt.Sprint(s.Seed))
	}
	var names []string
	for name := range s.NCCL.Env { //lint:sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add("--env", name+"="+s.NCCL.Env[name])
	}
	return strings.Join(words, " ")
}

// network adds the flags of the network between nodes.
func network(n *scenario.Network, add func(flag, value string)) {
	add("--fabric", n.Fabric)
	add("--hosts", n.Hosts)
	if n.Model != "flow" {
		add("--network", n.Model)
	}
	add("--cc", n.CC)
	add("--balance", n.Balance)
	add("--network-class", n.Class)
	for _, f := range n.Faults {
		add("--fault", f)
	}
}

// workload adds what says what is run, at which sizes.
func workload(w *scenario.Workload, add func(flag, value string), number func(flag string, value int64)) {
	if len(w.Sizes) > 0 {
		add("--sizes", strings.Join(w.Sizes, ","))
	} else {
		add("-b", w.Range.Min)
		add("-e", w.Range.Max)
		number("-f", w.Range.Factor)
		add("-i", w.Range.Step)
	}
	if len(w.Types) == 1 {
		add("-d", w.Types[0])
	}
	if len(w.Reductions) == 1 {
		add("-o", w.Reductions[0])
	}
	number("-r", int64(w.Root))
	number("-m", int64(w.Group))
	number("-N", int64(w.Cycles))
	switch w.Buffers {
	case "registered":
		number("-R", 1)
	case "windows":
		number("-R", 2)
	}
	number("-x", int64(w.CTAPolicy))
	number("-u", int64(w.Unalign))
	number("-D", int64(w.Device))
	number("-V", int64(w.DeviceBlocks))
	add("--kernel", w.Kernel)
}

// quote is a word as a shell takes it.
func quote(word string) string {
	safe := word != ""
	for _, r := range word {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_-./=,:+%@", r)) {
			safe = false
		}
	}
	if safe {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
