package decide

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/config"
	"github.com/spf13/cobra"
)

// EnvOptions are the flags and arguments of env.
type EnvOptions struct {
	Machine cli.Machine
	All     bool // also variables that are not set
}

// Env returns `simccl env`.
func Env(a *cli.App) *cobra.Command {
	var o EnvOptions
	c := &cobra.Command{Use: "env", Short: "Print settings, where they come from, and what they do here",
		Long: `env lists the NCCL_* variables that are set, by --env, the environment or NCCL's
configuration files, with their effect here or the reason why they have none;
--all lists every variable that NCCL ` + cli.Rules().String() + ` reads. With --topo or --nodes the
effects are those on that machine.`,
		Example: `  simccl env --env NCCL_ALGO=Ring
  simccl env --all --no-env
  NCCL_CROSS_NIC=0 simccl env --topo topo.xml --nodes 1`,
		Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) }}
	o.Machine.Register(c)
	c.Flags().BoolVar(&o.All, "all", false, "list every variable that NCCL reads")
	return c
}

// Run prints each setting with its value, its source and its effect on this machine.
func (o *EnvOptions) Run(_ context.Context, a *cli.App) error {
	c, facts, err := o.settings(a)
	if err != nil {
		return err
	}
	rows := config.EnvRows(c, facts, o.All)
	if a.JSON {
		if rows == nil {
			rows = []config.EnvRow{}
		}
		return a.PrintJSON(rows)
	}
	_, err = fmt.Fprint(a.Out, config.EnvText(rows))
	return err
}

// settings returns the settings of the machine that the flags select, and facts about it. Without a machine
// or release it returns the settings of the process.
func (o *EnvOptions) settings(a *cli.App) (*config.Config, config.Facts, error) {
	m := &o.Machine
	here := m.Topo != "" || m.Nodes != 0
	if !here && m.NCCL == "" && m.LibNCCL == "" {
		c, err := a.Config()
		return c, config.Facts{}, err
	}
	x, err := m.Load(a)
	switch {
	case err != nil:
		return nil, config.Facts{}, err
	case !here:
		return x.Config, config.Facts{}, nil
	}
	return x.Config, x.Facts(), nil
}
