// Package completion lists for shells what is valid where on a command line.
package completion

import (
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/spf13/cobra"
)

// words are the values of options that take one of a few.
func words() map[string][]string {
	var types, reductions []string
	for _, d := range coll.DataTypes() {
		types = append(types, d.TestName())
	}
	for _, o := range coll.RedOps() {
		reductions = append(reductions, o.TestName())
	}
	return map[string][]string{
		"multicast": {"auto", "on", "off"}, "launch": {"eager", "graph"}, "fidelity": {"alpha", "step",
			"flow"}, "network": {"flow", "packet", "hybrid"},
		"backend": {"nccl", "cuda", "host", "sockets", "verbs"}, "trace-style": {"lanes", "nccl"},
		"trace-detail": nccl.Simulated,
		"datatype":     types, "op": reductions, "routing": {"ecmp", "adaptive", "static"},
	}
}

// operations are the names that OP may have.
func operations() []string {
	var out []string
	for _, f := range coll.Funcs() {
		out = append(out, f.TestName())
	}
	return out
}

// topologies are the built-in machines, beside files.
func topologies(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, m := range builtin.List() {
		out = append(out, m.Name+"\t"+m.Title)
	}
	return out, cobra.ShellCompDirectiveDefault
}

// Register lists for the shell what is valid where: operations for OP, the
// values of options, the names of settings after --env.
func Register(root *cobra.Command) {
	values, ops := words(), operations()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if strings.Contains(c.Use, " OP") || strings.Contains(c.Use, "[OP") {
			c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string,
				cobra.ShellCompDirective) {
				if len(args) > 0 && !strings.Contains(c.Use, "[OP") {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return ops, cobra.ShellCompDirectiveNoFileComp
			}
		}
		if c.Flags().Lookup("topo") != nil {
			_ = c.RegisterFlagCompletionFunc("topo", topologies)
		}
		for name, list := range values { //lint:sorted each is set by itself
			if c.Flags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list,
					cobra.ShellCompDirectiveNoFileComp))
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
