package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/cobra"
)

// config reads the settings and warns of what a user should know of them.
func (a *app) config() (*config.Config, error) {
	return scenario.Settings(a.sources(), a.warnOf, a.cancelled)
}

// sources are where settings come from.
func (a *app) sources() config.Sources {
	s := config.Sources{Flags: a.env, Environ: a.environ, NoEnv: a.noEnv, ReadFile: a.readConf}
	if home, err := os.UserHomeDir(); err == nil {
		s.Home = home
	}
	return s
}

// getenv reads --env, then the environment.
func (a *app) getenv(name string) (string, bool) { return a.sources().Getenv(name) }

// readConf reads one of NCCL's configuration files, whose names are not relative
// to a.dir.
func (a *app) readConf(name string) ([]byte, error) {
	return readFile(a.context(), name, maxSettings)
}

func newEnv(a *app) *cobra.Command {
	var m machineFlags
	all := false
	c := &cobra.Command{Use: "env", Short: "Print settings, where they come from, and what they do here",
		Long: `env lists the NCCL_* variables that are set, by --env, the environment or NCCL's
configuration files, with their effect here or the reason why they have none;
--all lists every variable that NCCL ` + ncclRules().String() + ` reads. With --topo or --nodes the
effects are those on that machine.`,
		Example: `  simccl env --env NCCL_ALGO=Ring
  simccl env --all --no-env
  NCCL_CROSS_NIC=0 simccl env --topo topo.xml --nodes 1`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			var c *config.Config
			var facts config.Facts
			if m.topo != "" || m.nodes != 0 {
				x, err := m.load(a)
				if err != nil {
					return err
				}
				c, facts = x.Config, config.FactsOf(x.Comm)
			} else {
				var err error
				if c, err = a.config(); err != nil {
					return err
				}
			}
			rows := config.EnvRows(c, facts, all)
			if a.json {
				if rows == nil {
					rows = []config.EnvRow{}
				}
				return a.printJSON(rows)
			}
			_, err := fmt.Fprint(a.out, config.EnvText(rows))
			return err
		}}
	m.register(c)
	c.Flags().BoolVar(&all, "all", false, "list every variable that NCCL reads")
	return c
}

// printJSON prints one document, indented.
func (a *app) printJSON(v any) error { return encode(a.out, " ", false, v) }

// encode writes one document of JSON; html escapes <, > and &.
func encode(w io.Writer, indent string, html bool, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(html)
	enc.SetIndent("", indent)
	return enc.Encode(v)
}
