package topo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FabricOptions are the flags and arguments of fabric.
type FabricOptions struct {
	Layout fabric.Layout
	From   string         // a site's file, in place of a kind
	More   []string       // further ones
	Topo   []string       // topology files of hosts, whose NICs are matched by GUID
	Names  string         // of hosts
	given  *pflag.FlagSet // of a command line; nil: the values alone count
}

// fabricCommand is simccl topo fabric: it lays out a network between nodes, or reads that of a site.
func fabricCommand(a *cli.App) *cobra.Command {
	var o FabricOptions
	p := &o.Layout
	var kinds []string
	for _, k := range fabric.Kinds() {
		kinds = append(kinds, fmt.Sprintf("  %-11s %s", k[0], k[1]))
	}
	c := &cobra.Command{Use: "fabric KIND", Short: "Lay out a network between nodes, for --fabric",
		Long: "fabric writes a network between nodes as a file for --fabric (docs/FABRIC.md). KIND is\n" +
			strings.Join(kinds, "\n") + `

--from FILE... reads the network of a site in its place: the output of ibnetdiscover, Slurm's
topology.conf or topology.yaml, LLDP neighbours (lldpcli -f json or json0 show neighbors; a file a
device), or a table of cables (CSV). What the files do not say is assumed, and said.`,
		Example: "  simccl topo fabric rail --hosts 16 --nets 8 > rail.json\n" +
			"  simccl topo fabric leaf-spine --hosts 4 --nets 8 --per-leaf 1 --oversub 2 > thin.json\n" +
			"  simccl run all_reduce --nodes 4 --fabric thin.json --sizes 1M --columns +limit\n" +
			"  simccl topo fabric --from ibnetdiscover.txt > site.json; simccl topo fabric show site.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.From != "" {
				return nil
			}
			return cli.Exactly("KIND")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.From != "" {
				o.More = args
				return o.read(a)
			}
			p.Kind = args[0]
			return o.Run(cmd.Context(), a)
		}}
	c.AddCommand(fabricShow(a), fabricPlace(a))
	f := c.Flags()
	o.given = f
	f.IntVar(&p.Hosts, "hosts", 2, "number of hosts `N`")
	f.IntVar(&p.Nets, "nets", 8, "nets `N` of a host")
	f.IntVar(&p.Ports, "ports", 1, "ports `N` of a net that NCCL fuses of several")
	f.Float64Var(&p.Gbit, "gbit", 400, "speed of a port in `GBIT`/s")
	f.IntVar(&p.PerLeaf, "per-leaf", 0,
		"hosts `N` of a leaf, or of a group of rail leaves or pod (default all)")
	f.IntVar(&p.Spines, "spines", 0, "spines or cores `N` (default as many as the leaves' ports need)")
	f.IntVar(&p.Radix, "radix", 0, "ports `N` of a switch (default as many as needed)")
	f.IntVar(&p.Planes, "planes", 2, "planes `N`, for planes")
	f.Float64Var(&p.Oversub, "oversub", 1, "speed of a leaf's ports to hosts over that of its uplinks `X`")
	f.Float64Var(&p.Latency, "latency-us", 0.3,
		"latency `US` that a cable between switches adds, its switch included")
	f.BoolVar(&p.Rails, "rails", false,
		"write the rail and the plane of each net, by which NCCL 2.30.7 matches nets")
	f.StringVar((*string)(&p.Routing), "routing", string(fabric.ECMP), "ecmp, adaptive or static")
	f.StringVar(&o.From, "from", "",
		"read the network of a site: `FILE` of ibnetdiscover, Slurm, LLDP or cables")
	f.StringSliceVar(&o.Topo, "topo", nil, "topology `FILES` of hosts, with --from: NICs are theirs by GUID")
	f.StringVar(&o.Names, "host-names", "", "`PATTERN` of the names of hosts, with --from: gpu*")
	return c
}

// Run generates the network of a Layout, or reads a site's files, and prints it as a fabric file.
func (o *FabricOptions) Run(_ context.Context, a *cli.App) error {
	p := o.Layout
	if p.Routing != fabric.ECMP && p.Routing != fabric.Adaptive && p.Routing != fabric.Static {
		return fail.Usage("--routing %s: write ecmp, adaptive or static", p.Routing)
	}
	if p.Oversub == 0 {
		return fail.Usage("--oversub 0: 1 does not block, 2 is 2:1")
	}
	if p.Kind != "planes" && o.given != nil && o.given.Changed("planes") {
		return fail.Usage("--planes is for the kind planes; %s has one", p.Kind)
	}
	n, err := fabric.Generate(p)
	var bad *fabric.LayoutError
	if errors.As(err, &bad) {
		return fail.Usage("%v", err)
	}
	if err != nil {
		return err
	}
	_, err = a.Out.Write(n.Format())
	return err
}
