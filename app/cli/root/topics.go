package root

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/spf13/cobra"
)

// topic is one topic. Its text is made when it is asked for.
type topic struct {
	Name, Short string
	Text        func() string
}

// Topics lists the topics.
func Topics() []topic {
	return []topic{
		{"algorithms", "Algorithms of bench --backend cuda", algorithmsTopic},
		{"columns", "Columns that --columns adds to the table", columnsTopic},
		{"environment", "Variables that simccl reads, beside NCCL's own", environmentTopic},
		{"faults", "What --fault breaks, and how it is written", faultsTopic},
		{"glossary", "Words of NCCL and of networks that explain explains", glossaryTopic},
		{"networks", "Networks between nodes: models, fabrics, NICs, congestion control", networksTopic},
		{"releases", "Releases of NCCL whose decisions simccl knows", releasesTopic},
	}
}

// Command returns the topic as a command without action, which cobra lists as a topic.
func (t *topic) Command() *cobra.Command {
	c := &cobra.Command{Use: t.Name, Short: t.Short}
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Long = t.Text()
		c.Root().HelpFunc()(c, args)
	})
	return c
}

// topicRows formats names and descriptions in two columns.
func topicRows(rows ...[2]string) string {
	longest := 0
	for _, r := range rows {
		longest = max(longest, len(r[0]))
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "  %-*s  %s\n", longest, r[0], r[1])
	}
	return b.String()
}

func glossaryTopic() string {
	var rows [][2]string
	for _, w := range explain.Words() {
		rows = append(rows, [2]string{w.Name, strings.Join(w.Aliases, ", ")})
	}
	return `simccl explain WORD says what it means, in five lines, with a drawing where one says more:

` + topicRows(rows...)
}

func releasesTopic() string {
	return `--nccl-version names the release of NCCL whose decisions are simulated. simccl has
the rules of these releases:

  ` + release.Names() + `

A release between two of them is answered by the one whose source differs least:
2.29.3 by 2.29.2, 2.27.6 by 2.27.7. A release after the last is answered by the last.
A note says so, and what is known to differ. Releases before the first are refused.

torch==2.8 (any version of PyTorch) names the release that PyTorch's wheel depends on;
where that depends on the wheel's CUDA, write it: torch==2.6+cu126.

--libnccl FILE reads the release from a library, libnccl.so.2 or libnccl_static.a.
Nothing in it runs.

--rccl-version names one of AMD's RCCL: 2.30.4, 2.28.3, or the release of ROCm that brings it, rocm==7.14. A file of AMD GPUs takes 2.30.4
by itself (docs/RCCL.md).

Without any of them: SIMCCL_NCCL_VERSION, else ` + cli.Rules().String() + `. simccl diff --a 2.27.5 --b 2.29.7
compares two releases; docs/VERSIONS.md says what each is confirmed by.
`
}

func columnsTopic() string {
	var rows [][2]string
	for _, c := range sweep.AllColumns() {
		rows = append(rows, [2]string{c.Head.Name, c.What})
	}
	return `--columns +algo,proto,nch adds columns to nccl-tests' table. Of run:

` + topicRows(rows...) + `
Of bench on GPUs those and these:

` + topicRows(
		[2]string{"sim", "simulated time of this machine, in us"},
		[2]string{"simratio", "simulated over measured time"},
		[2]string{"min, p50, p95, p99, max", "times of single iterations, in us (-I 1)"},
		[2]string{"shape", "algorithm that ran (--backend cuda)"},
		[2]string{"nccl", "time of NVIDIA's NCCL, in us (--backend cuda --compare)"},
		[2]string{"ofnccl", "measured time over NCCL's (--backend cuda --compare)"}) + `
Of bench on CPUs: algo, proto, nch and model.
`
}

func networksTopic() string {
	var fabrics, classes [][2]string
	for _, p := range netpreset.Presets() {
		fabrics = append(fabrics, [2]string{p.Name, p.What})
	}
	for _, name := range gpu.NetworkNames() {
		what := ""
		if n, err := gpu.NetworkNamed(name); err == nil {
			what = n.Network
		}
		classes = append(classes, [2]string{name, what})
	}
	return `--network is the model of the network between nodes:

` + topicRows(
		[2]string{"flow", "messages share the links max-min; no queues (default)"},
		[2]string{"packet", "every frame: queues of switches, ECN, PFC or credits, congestion control"},
		[2]string{"hybrid", "packet where queues can build up, else flow"}) + `
--fabric is the network itself: a FILE, as simccl topo fabric writes it, or one of these,
laid out for the nodes of the run. Without it the network is ideal, of the NICs' speed.

` + topicRows(fabrics...) + `
--network-class is what NICs and their plugin cost, and what the plugin sets: a FILE, or
one of these. The default follows from the machine's name, else from its NICs.

` + topicRows(classes...) + `
--cc is the congestion control of senders, with --network packet. The default is the
fabric's.

  ` + packet.Presets + `

--balance is how frames choose among equal-cost routes, with --network packet. The default
is the fabric's.

` + topicRows(
		[2]string{"queue-pair", "each queue pair keeps its route: ECMP by a hash"},
		[2]string{"flowlet", "after a pause, a queue pair takes the shortest queue"},
		[2]string{"packet", "each frame takes the shortest queue"}) + `
docs/FABRIC.md and docs/PACKETS.md say more.
`
}

func faultsTopic() string {
	return `--fault DEVICE:FAULT breaks a device of the simulated machine; it may be repeated.

Devices:
` + topicRows(
		[2]string{"rank=3", "a GPU by its rank"},
		[2]string{"nic=node0/2",
			"the third NIC of the first node; nic=mlx5_3: the NIC of that name on every node"},
		[2]string{"nic=node0/2.1", "one port of a NIC with several, numbered from 1"},
		[2]string{"link=leaf0~spine1", "the cables between two ends of the network (--fabric)"}) + `
Faults:
` + topicRows(
		[2]string{"slow=1.5", "1.5 times as long; of a NIC or link, a rate divided by 1.5"},
		[2]string{"latency=5", "5 us more; of a NIC or link"},
		[2]string{"loss=0.001", "this share of packets is lost; of a NIC or link"},
		[2]string{"down", "a rank that has failed (status 4), a NIC that nothing passes (status 3), or a " +
			"link that routes avoid"},
		[2]string{"storm@10-100", "with --network packet: pause frames without end, from 10 to 100 us"},
		[2]string{"flap=20/100", "with --network packet: down for 20 us of each 100"}) + `
With --network packet @FROM-TO limits the time of one of a NIC or link, but latency: in us
after the start, link=leaf0~spine1:down@100-300.

Devices that are missing, so that NCCL decides anew; without node0/ on every node:
` + topicRows(
		[2]string{"gpu=node0/3:absent", "a GPU by its number or bus id"},
		[2]string{"nic=node0/2:absent", "a NIC"},
		[2]string{"nvswitch=0:absent", "an NVSwitch by its number or bus id"},
		[2]string{"rail=3:absent", "the NIC of that number on every node"},
		[2]string{"leaf=leaf3:absent",
			"a leaf switch, and the NICs that reach the network only through it"}) + `
In simccl network run, link=0~7:FAULT names the cables between nodes 0 and 7 of ns-3's
files (with --fabric link=leaf0~spine1), and nic=0:FAULT the cables of host 0. FAULT is
slow, latency, loss, down, storm or flap as above; @FROM-TO counts from the first start of
a flow. The older form 0-7:slow=0.5 is read, too: its slow is the share of the speed that
is left.

docs/FABRIC.md and docs/PACKETS.md say more.
`
}

func environmentTopic() string {
	var rows [][2]string
	for _, v := range config.Vars() {
		if strings.HasPrefix(v.Name, "SIMCCL_") {
			rows = append(rows, [2]string{v.Name, v.Meaning})
		}
	}
	return `NCCL's variables have NCCL's meaning. First counts --env NCCL_K=V, then the environment,
then NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf; --no-env leaves all but --env
out. simccl env says which are in force and what they change here; simccl env --all lists
every variable that NCCL reads.

simccl's own:

` + topicRows(rows...) + `
nccl-tests':

` + topicRows(
		[2]string{"NCCL_TESTS_SPLIT",
			"divide the ranks into groups that run at the same time: AND, OR, MOD or DIV and a number"},
		[2]string{"NCCL_TESTS_SPLIT_MASK", "the same by AND with a hexadecimal number"},
		[2]string{"NCCL_TESTS_MIN_BW",
			"GB/s; the exit status is 7 where the average bus bandwidth is below 0.9 of it"}) + `
The terminal's:

` + topicRows(
		[2]string{"COLUMNS", "width of help, in place of the terminal's"},
		[2]string{"NO_COLOR", "no colours"})
}

func algorithmsTopic() string {
	return `--algo is the algorithm of bench --backend cuda. auto measures all that do an operation
and takes the fastest of each size.

` + topicRows(
		[2]string{"plan", "NCCL's own schedule, with the algorithm and protocol that NCCL chooses"},
		[2]string{"one-shot",
			"each rank writes everything to every peer as words with flags (LL), and reduces everything"},
		[2]string{"two-words", "each rank reduces its share and sends it on, as words with flags (LL)"},
		[2]string{"two-shot", "the same in lines of 128 bytes with a flag (LL128)"},
		[2]string{"push",
			"the same by plain stores, piece by piece; a counter behind a fence announces each"},
		[2]string{"direct", "loads and stores of peer memory between two barriers"},
		[2]string{"copies", "copy engines move data, kernels only reduce"},
		[2]string{"words",
			"broadcast, reduce, gather, scatter and sendrecv in one hop, as words with flags (LL)"},
		[2]string{"lines", "the same in lines with flags (LL128)"},
		[2]string{"relay", "broadcast to three or more: each peer passes on its share, so that the root " +
			"sends each byte once"}) + `
All but plan need GPUs that reach each other's memory. docs/results/HARDWARE.md has their times.
`
}
