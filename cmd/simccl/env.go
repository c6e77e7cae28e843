package main

import (
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/config"
	"github.com/spf13/cobra"
)

func newEnv(a *app) *cobra.Command {
	var m cli.Machine
	all := false
	c := &cobra.Command{Use: "env", Short: "Print settings, where they come from, and what they do here",
		Long: `env lists the NCCL_* variables that are set, by --env, the environment or NCCL's
configuration files, with their effect here or the reason why they have none;
--all lists every variable that NCCL ` + cli.Rules().String() + ` reads. With --topo or --nodes the
effects are those on that machine.`,
		Example: `  simccl env --env NCCL_ALGO=Ring
  simccl env --all --no-env
  NCCL_CROSS_NIC=0 simccl env --topo topo.xml --nodes 1`,
		Args: cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			var c *config.Config
			var facts config.Facts
			if here := m.Topo != "" || m.Nodes != 0; here || m.NCCL != "" || m.LibNCCL != "" {
				x, err := m.Load(&a.App)
				if err != nil {
					return err
				}
				if c = x.Config; here {
					facts = config.FactsOf(x.Comm)
				}
			} else {
				var err error
				if c, err = a.Config(); err != nil {
					return err
				}
			}
			rows := config.EnvRows(c, facts, all)
			if a.JSON {
				if rows == nil {
					rows = []config.EnvRow{}
				}
				return a.PrintJSON(rows)
			}
			_, err := fmt.Fprint(a.Out, config.EnvText(rows))
			return err
		}}
	m.Register(c)
	c.Flags().BoolVar(&all, "all", false, "list every variable that NCCL reads")
	return c
}
