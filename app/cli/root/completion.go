package root

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/workload/gen"
	"github.com/spf13/cobra"
)

// flagChoices returns the values of options that accept a fixed set.
func flagChoices() map[string][]string {
	var types, reductions, fabrics []string
	for _, d := range coll.DataTypes() {
		types = append(types, d.TestName())
	}
	for _, o := range coll.RedOps() {
		reductions = append(reductions, o.TestName())
	}
	for _, p := range netpreset.Presets() {
		fabrics = append(fabrics, p.Name+"\t"+p.What)
	}
	return map[string][]string{
		"multicast": {"auto", "on", "off"}, "launch": {"eager", "graph"}, "fidelity": {"alpha", "step",
			"flow"}, "network": {"flow", "packet", "hybrid"},
		"backend": {"nccl", "cuda", "host", "sockets", "verbs"}, "trace-style": {"lanes", "nccl"},
		"trace-detail": nccl.Simulated,
		"datatype":     types, "op": reductions, "routing": {"ecmp", "adaptive", "static"},
		"balance": {"queue-pair", "flowlet", "packet"}, "fold": {"auto", "exact", "near", "off"},
		"skip": {"auto", "off"}, "jitter": {"drawn", "off"}, "cc": strings.Split(packet.Presets, ", "),
		"fault":        {"rank=", "nic=node0/", "link=", "gpu=node0/", "nvswitch=", "rail=", "leaf="},
		"nccl-version": strings.Split(release.Names(), ", "), "rccl-version": {"2.30.4", "2.28.3", "rocm=="},
		"gpu": gen.GPUs(), "fabric": fabrics,
		"all-reduce":    append(peer.AllReduceKernels(), gen.ByNCCL),
		"dispatch":      append(peer.ExpertKernels(), gen.Gathered, gen.ByNCCL),
		"machine-class": gpu.Names(), "network-class": gpu.NetworkNames(),
		"traffic": {"incast:", "permutation", "alltoall", "websearch", "hadoop"},
	}
}

// networkRun reads the input of packet simulators: its topology and its fabric are files.
const networkRun = "simccl network run"

// packetChoices are its values where they are not those of choices.
func packetChoices() map[string][]string {
	return map[string][]string{"routing": {"ecmp", "adaptive", "flowlet"}, "fault": {"link=", "nic="},
		"fabric": nil}
}

// open are the options of choices that also take files.
var open = []string{"fabric", "machine-class", "network-class"}

// unended lists options whose value continues after the completed part: a device is followed by a fault,
// "rccl-" by a number, "incast:" by that of its hosts.
var unended = []string{"fault", "rccl-version", "traffic"}

// columnChoices completes the last of +NAME,NAME,… by the names of the table's columns.
func columnChoices(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := "+"
	if i := strings.LastIndexByte(typed, ','); i >= 0 {
		before = typed[:i+1]
	}
	var out []string
	for _, c := range sweep.AllColumns() {
		if !slices.Contains(strings.Split(strings.TrimPrefix(typed, "+"), ","), c.Head.Name) {
			out = append(out, before+c.Head.Name+"\t"+c.What)
		}
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// operationChoices lists the names of operations for OP.
func operationChoices() []string {
	var out []string
	for _, f := range coll.Funcs() {
		out = append(out, f.TestName())
	}
	return out
}

// topologyFiles completes the names of built-in machines, in addition to files.
func topologyFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, m := range builtin.List() {
		out = append(out, m.Name+"\t"+m.Title)
	}
	return out, cobra.ShellCompDirectiveDefault
}

// directive returns the shell's completion directive for an option's value.
func directive(name string) (d cobra.ShellCompDirective) {
	if !slices.Contains(open, name) {
		d |= cobra.ShellCompDirectiveNoFileComp
	}
	if slices.Contains(unended, name) {
		d |= cobra.ShellCompDirectiveNoSpace
	}
	return d
}

// argumentChoices completes the arguments of a command by their names in its usage: operations for OP,
// machine classes for CLASS; nil: files.
func argumentChoices(use string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	_, args, _ := strings.Cut(use, " ")
	switch {
	case strings.HasPrefix(args, "CLASS"):
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return gpu.Names(), cobra.ShellCompDirectiveDefault
		}
	case strings.HasPrefix(strings.TrimPrefix(args, "["), "OP"):
		ops := operationChoices()
		if strings.HasSuffix(args, "| WORD") {
			ops = append(ops, explain.WordNames()...)
		}
		return func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(given) > 0 && args[0] != '[' {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return ops, cobra.ShellCompDirectiveNoFileComp
		}
	}
	return nil
}

// registerCompletion declares the completions of a command tree: operations for OP, the values of options,
// the names of settings after --env.
func registerCompletion(root *cobra.Command) {
	values := flagChoices()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if f := argumentChoices(c.Use); f != nil {
			c.ValidArgsFunction = f
		}
		if c.Flags().Lookup("topo") != nil && c.CommandPath() != networkRun {
			_ = c.RegisterFlagCompletionFunc("topo", topologyFiles)
		}
		if c.Flags().Lookup("columns") != nil {
			_ = c.RegisterFlagCompletionFunc("columns", columnChoices)
		}
		for name, list := range values { //lint:sorted each is set by itself
			if own, found := packetChoices()[name]; found && c.CommandPath() == networkRun {
				list = own
			}
			if c.Flags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, directive(name)))
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	_ = root.RegisterFlagCompletionFunc("env", func(_ *cobra.Command, _ []string, typed string) ([]string,
		cobra.ShellCompDirective) {
		var out []string
		if cfg, _, err := config.Load(config.Sources{}); err == nil && !strings.Contains(typed, "=") {
			for _, row := range config.EnvRows(cfg, config.Facts{}, true) {
				out = append(out, row.Name+"=")
			}
		}
		return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
}
