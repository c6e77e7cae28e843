package topo

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/site"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// read writes the fabric file of the network that a site's files describe.
func (o *FabricOptions) read(a *cli.App) error {
	p := &o.Layout
	if p.Gbit <= 0 || p.Gbit > 1e6 || p.Nets < 1 || p.Nets > 64 || p.Oversub <= 0 || p.Latency < 0 {
		return fail.Usage("--gbit %g, --nets %d, --oversub %g, --latency-us %g: each is above 0, --nets at "+
			"most 64", p.Gbit,
			p.Nets, p.Oversub, p.Latency)
	}
	s := site.Options{Gbit: p.Gbit, Latency: p.Latency, Nets: p.Nets, Oversub: p.Oversub, Hosts: o.Names}
	var err error
	if s.GUIDs, err = guids(a, o.Topo); err != nil {
		return err
	}
	var plans []*site.Plan
	for _, name := range append([]string{o.From}, o.More...) {
		one, err := readPlan(a, name, s)
		if err != nil {
			return err
		}
		plans = append(plans, one)
	}
	whole, err := site.Merge(plans...)
	if err != nil {
		return fail.Input(err)
	}
	n, assumed, err := whole.Network(s)
	if err != nil {
		return fail.Input(err)
	}
	n.Routing = p.Routing
	data := n.Format()
	if _, err := fabric.ParseNetwork(data, o.From); err != nil {
		return fail.Input(err)
	}
	for _, w := range assumed {
		a.Warn("%s: %s", o.From, w)
	}
	for _, odd := range n.Oddities() {
		a.Warn("%s: %s", o.From, odd)
	}
	_, err = a.Out.Write(data)
	return err
}

// readPlan reads a file according to its kind.
func readPlan(a *cli.App, name string, s site.Options) (*site.Plan, error) {
	data, err := a.Read(name, fabric.MaxBytes)
	if err != nil {
		return nil, err
	}
	v := inputs.Of(data)
	if err := v.Want(name, inputs.Networks()...); err != nil {
		return nil, fail.Input(err)
	}
	text, plan := v.Text, (*site.Plan)(nil)
	switch {
	case v.Is(inputs.IBNetDiscover):
		plan, err = site.InfiniBand(text, name, s)
	case v.Is(inputs.SlurmTopology):
		plan, err = site.Slurm(text, name, s)
	case v.Is(inputs.SlurmYAML):
		plan, err = site.SlurmYAML(text, name, s)
	case v.Is(inputs.LLDP):
		plan, err = site.LLDP(text, name)
	case v.Is(inputs.CableTable):
		plan, err = site.Cables(text, name)
	default:
		err = &inputs.UnknownError{File: name, Note: v.Note, Wants: "a network", Kinds: inputs.Networks()}
	}
	return plan, fail.Input(err)
}

// guids returns the NICs of the topology files by GUID. A host is named after its file, without the ending.
func guids(a *cli.App, files []string) (map[uint64]site.NIC, error) {
	out := map[uint64]site.NIC{}
	opt := a.Options(nil)
	for _, name := range files {
		f, err := opt.ReadTopology(name)
		if err != nil {
			return nil, err
		}
		spec, err := topoxml.Parse(f.Data, f.Name)
		if err != nil {
			return nil, fail.Input(err)
		}
		host := strings.TrimSuffix(path.Base(name), path.Ext(name))
		spec.Root.Walk(func(e *decl.Element, _ []*decl.Element) {
			if g, ok := e.Hex("guid"); ok && e.Name == "net" && g != 0 {
				net, _ := e.Get("name")
				out[g] = site.NIC{Host: host, Net: net}
			}
		})
	}
	return out, nil
}

// FabricShowOptions are the arguments of fabric show.
type FabricShowOptions struct{ File string }

func fabricShow(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "show FILE",
		Short: "Draw a network, and say what is cabled otherwise than its peers",
		Long: `show prints the switches of a network tier by tier, with their cables, and what
is cabled otherwise than its peers: a port on another leaf, a cable that is
missing, too few between two switches, a slower one. Exit status 7 where there
is such.`,
		Example: "  simccl topo fabric --from cables.csv > site.json; simccl topo fabric show site.json",
		Args:    cli.Exactly("FILE"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &FabricShowOptions{args[0]} })}
}

func readFabric(a *cli.App, name string) (*fabric.Network, error) {
	data, err := a.ReadAs(name, fabric.MaxBytes, inputs.Fabric)
	if err != nil {
		return nil, err
	}
	n, err := fabric.ParseNetwork(data, name)
	return n, fail.Input(err)
}

// Run prints the tiers, cables and oddities of a fabric file.
func (o *FabricShowOptions) Run(_ context.Context, a *cli.App) error {
	n, err := readFabric(a, o.File)
	if err != nil {
		return err
	}
	odd := n.Oddities()
	if a.JSON {
		if odd == nil {
			odd = []string{}
		}
		err = a.PrintJSON(struct {
			Tiers    []fabric.TierInfo `json:"tiers"`
			Oddities []string          `json:"oddities"`
		}{n.Drawn(), odd})
	} else {
		var b strings.Builder
		for _, t := range n.Drawn() {
			b.WriteString(t.String())
		}
		for _, s := range odd {
			b.WriteString("otherwise than its peers: " + s + "\n")
		}
		err = a.PrintText(b.String())
	}
	if err == nil && len(odd) > 0 {
		return fail.Check("%d cables or ports are otherwise than those of their peers", len(odd))
	}
	return err
}

// FabricPlaceOptions are the flags and arguments of fabric place.
type FabricPlaceOptions struct {
	File, Hosts, Print string
}

func fabricPlace(a *cli.App) *cobra.Command {
	var o FabricPlaceOptions
	c := &cobra.Command{Use: "place FILE --hosts LIST", Short: "Say which switches a job's hosts cross",
		Long: `place reads the hosts of a job (Slurm's nodelist, MPI's host file, Kubernetes'
nodes) and prints on which leaves they are, and how many hops of NCCL's rings
leave a leaf: with the hosts in the order given, which is that of the ranks and
so of NCCL's nodes; in the order of a scheduler's topology plugin (Slurm's
topology/tree with SwitchAsNodeRank: hosts of one leaf together); and with as
many hosts on the fewest leaves. --print ORDER writes one of these orders as a
list for --hosts of run and diff, which give the times.`,
		Example: "  simccl topo fabric place site.json --hosts nodes.txt\n" +
			"  simccl topo fabric place site.json --hosts nodes.txt --print plugin > sorted.txt\n" +
			"  simccl run all_reduce --fabric site.json --hosts sorted.txt --sizes 64M",
		Args: cli.Exactly("FILE"),
		RunE: cli.RunWithOne(a, &o, &o.File)}
	c.Flags().StringVar(&o.Hosts, "hosts", "", "`LIST` of the job's hosts, in the order of ranks")
	c.Flags().StringVar(&o.Print, "print", "", "write the hosts in an `ORDER`: given, plugin or packed")
	return c
}

// order is an order of hosts and its cost.
type order struct {
	Order    string   `json:"order"`
	What     string   `json:"-"`
	Hosts    []string `json:"hosts"`
	Leaves   []string `json:"leaves"`
	Crossing int      `json:"crossing"`
	Hops     int      `json:"hops"`
	at       []int
}

// Run prints the orders of the hosts with the leaves that they use and the ring hops that leave a leaf.
func (o *FabricPlaceOptions) Run(_ context.Context, a *cli.App) error {
	if o.Hosts == "" {
		return fail.Usage("whose hosts? write --hosts LIST")
	}
	n, err := readFabric(a, o.File)
	if err != nil {
		return err
	}
	data, err := a.ReadAs(o.Hosts, 16<<20, inputs.HostList, inputs.KubernetesNodes)
	if err != nil {
		return err
	}
	names, err := site.Hosts(data, o.Hosts)
	if err != nil {
		return fail.Input(err)
	}
	hosts, err := n.Find(names)
	if err != nil {
		return fail.Input(fmt.Errorf("%s: %w", o.Hosts, err))
	}
	orders := []order{{Order: "given", What: "as listed: NCCL's rings follow the ranks", at: hosts},
		{Order: "plugin", What: "by a topology plugin: hosts of a leaf together", at: n.ByLeaf(hosts)},
		{Order: "packed", What: "as many hosts on the fewest leaves", at: n.Packed(len(hosts))}}
	for i := range orders {
		x := &orders[i]
		x.Leaves, _ = n.Crossed(x.at)
		x.Crossing, x.Hops = n.Crossings(x.at)
		for _, h := range x.at {
			x.Hosts = append(x.Hosts, n.HostName(h))
		}
		if x.Order == o.Print {
			return a.PrintText(strings.Join(x.Hosts, "\n") + "\n")
		}
	}
	if o.Print != "" {
		return fail.Usage("--print %s: write given, plugin or packed", o.Print)
	}
	if a.JSON {
		return a.PrintJSON(orders)
	}
	return a.PrintText(placed(n, orders))
}

// placed formats the orders.
func placed(n *fabric.Network, orders []order) string {
	var b strings.Builder
	leaves, ports := n.Crossed(orders[0].at)
	fmt.Fprintf(&b, "%d of %d hosts, on %d leaves:\n", len(orders[0].at), n.NHosts(), len(leaves))
	for i, l := range leaves {
		if i == 32 {
			fmt.Fprintf(&b, "  and %d more\n", len(leaves)-i)
			break
		}
		fmt.Fprintf(&b, "  %s: %d of their ports\n", l, ports[i])
	}
	b.WriteString("Hops of rings, one a port, that leave a leaf:\n")
	for _, x := range orders {
		fmt.Fprintf(&b, "  %-6s  %5d of %5d, %3d leaves  %s\n", x.Order, x.Crossing, x.Hops, len(x.Leaves),
			x.What)
	}
	if first, last := orders[0], orders[2]; first.Crossing > last.Crossing {
		fmt.Fprintf(&b, "Fewest leaves: %s to %s\n", last.Hosts[0], last.Hosts[len(last.Hosts)-1])
	}
	return b.String()
}
