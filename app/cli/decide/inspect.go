package decide

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/decision"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/spf13/cobra"
)

// InspectOptions are the flags and arguments of inspect.
type InspectOptions struct {
	Machine cli.Machine
	NCCLLog bool // print the lines of NCCL's log
}

// Inspect returns `simccl inspect`.
func Inspect(a *cli.App) *cobra.Command {
	var o InspectOptions
	c := &cobra.Command{Use: "inspect", Short: "Print the whole decision",
		Long: `inspect prints what NCCL decides for a machine: system and paths, graphs before
and after all ranks agree, channels, cost model, and the choice with its
chunking for every power of two. --json prints all of it as one document, and
--nccl-log what NCCL would log of rank 0 (and of the first rank of nodes that differ),
which check --log and topo convert read. Of a machine with GPUs of AMD it prints what
RCCL decides, without chunking.`,
		Example: `  simccl inspect --topo topo.xml --nodes 2 --json
  simccl inspect --topo topo.xml -g 4 --multicast off`,
		Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) }}
	o.Machine.Register(c)
	c.Flags().BoolVar(&o.NCCLLog, "nccl-log", false, "print what NCCL_DEBUG=INFO would show of it")
	return c
}

// Run prints the decision as JSON or text, or as the lines of NCCL's log.
func (o *InspectOptions) Run(_ context.Context, a *cli.App) error {
	x, err := o.Machine.Load(a)
	if err != nil {
		return err
	}
	switch {
	case o.NCCLLog:
		var set []ncclog.Setting
		for _, s := range x.Settings() {
			set = append(set, ncclog.Setting{Name: s[0], Value: s[1]})
		}
		return ncclog.WriteInit(a.Out, x.Comm, set)
	case !a.JSON:
		_, err = fmt.Fprint(a.Out, decision.Text(x.Comm, x.Name))
		return err
	}
	text, err := Document(a, x)
	if err != nil {
		return err
	}
	_, err = a.Out.Write(text)
	return err
}

// Document returns the whole decision as JSON.
func Document(a *cli.App, x *scenario.Site) ([]byte, error) {
	text, warn, err := decision.Of(x.Comm, x.Cluster, x.Settings())
	if warn != nil {
		a.Warn("%v", warn)
	}
	return text, err
}
