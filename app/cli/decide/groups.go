package decide

import (
	"bytes"
	"context"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/grouplog"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// GroupsOptions are the flags and arguments of groups.
type GroupsOptions struct {
	File    string
	Machine cli.Machine
}

// Groups returns `simccl groups`.
func Groups(a *cli.App) *cobra.Command {
	var o GroupsOptions
	c := &cobra.Command{Use: "groups FILE", Short: "What NCCL launches for groups of calls",
		Long: `groups reads groups of NCCL calls (GROUP and TASK lines, as
testdata/measured/h200x4/groups has them) and prints, for each, NCCL's own lines of
what it launches: algorithm, protocol and channels of every collective, in the
order of their launch, communicator after communicator; and the time of one group
in a CUDA graph, as one process with all GPUs measures it.

Communicators are the world and, in groups of mode split0 and split1, its halves
{0,1}{2,3} and strides {0,2}{1,3}. NCCL launches them in the order of a hash of
random ids: where the file has NCCL's lines, they show that order; else they
follow each other as the calls do.`,
		Example: `  simccl groups testdata/measured/h200x4/groups/plain2.txt --topo testdata/topos/h200x4-4.xml -g 2 --multicast off`,
		Args:    cli.Exactly("FILE"),
		RunE:    cli.RunWithOne(a, &o, &o.File)}
	o.Machine.Register(c)
	o.Machine.RegisterClass(c)
	o.Machine.RegisterNetwork(c)
	defaultOff(c, "multicast", &o.Machine.Multicast)
	return c
}

// Run prints NCCL's launches for the groups of a file.
func (o *GroupsOptions) Run(ctx context.Context, a *cli.App) error {
	if o.Machine.Network != "flow" {
		return fail.Usage("--network %s: groups use the GPUs of one node, without a network; leave it out",
			o.Machine.Network)
	}
	data, err := a.ReadAs(o.File, process.MaxResults, inputs.Groups)
	if err != nil {
		return err
	}
	list, err := grouplog.Read(bytes.NewReader(data), o.File)
	if err != nil {
		return fail.Input(err)
	}
	site, err := o.Machine.Load(a)
	if err != nil {
		return err
	}
	machine, err := grouplog.NewMachine(site)
	if err != nil {
		return fail.Argument(err)
	}
	out, err := machine.Answers(ctx, list)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(out)
	}
	return a.PrintText(grouplog.Text(out))
}

// defaultOff sets the default of an option to "off": the machines of the recorded groups had no NVLink
// multicast.
func defaultOff(c *cobra.Command, name string, value *string) {
	*value = "off"
	c.Flags().Lookup(name).DefValue = *value
}
