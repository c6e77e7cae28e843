package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
)

// Facts are what the effect of a variable can depend on; the zero Facts are a
// machine of which nothing is known.
type Facts struct {
	Known    bool
	Nodes    int // NCCL nodes
	Ranks    int
	MinSM    int
	NVSwitch bool // a rank's topology has an NVSwitch
	Hosts    int  // most hosts of one NVLink domain
	Nets     int  // fewest NICs of a node
	// AllNVLink is set where all GPUs of a node reach each other by NVLink.
	AllNVLink bool
	// HCAs are the devices of InfiniBand and RoCE in the machine's files, and Allowed how
	// many of them NCCL_IB_HCA allows.
	HCAs    []string
	Allowed int
}

// FactsOf gathers the facts of a communicator.
func FactsOf(c *comm.Comm) Facts {
	f := Facts{Known: true, Nodes: c.NNodes, Ranks: c.NRanks, MinSM: c.MinSM, AllNVLink: c.IsAllNVLink,
		Nets: -1}
	var last *topo.System
	for i := range c.Domains {
		s := c.Domains[i].System
		if s == last {
			continue
		}
		last = s
		f.Hosts = max(f.Hosts, s.NHosts)
		f.NVSwitch = f.NVSwitch || len(s.Of(topo.NVS)) > 0
		if n := len(s.Of(topo.NET)); f.Nets < 0 || n < f.Nets {
			f.Nets = n
		}
	}
	return f
}

// EnvRow is a line of `simccl env`.
type EnvRow struct {
	Name    string `json:"name"`
	Value   string `json:"value"` // as written; empty where unset
	Set     bool   `json:"set"`
	Origin  string `json:"origin"`
	Default string `json:"default"`
	Status  string `json:"status"` // "honoured", "no effect" or "unsupported"
	Room    string `json:"room"`
	Effect  string `json:"effect"` // what it does here, or why nothing
}

// EnvRows lists the variables in the table's order, then those that NCCL does
// not read; with all unset only those that a source set.
func EnvRows(c *Config, f Facts, all bool) []EnvRow {
	var rows []EnvRow
	table := c.table()
	for i := range table {
		v := &table[i]
		val, set := c.values[v.Name]
		if !set && !all || !v.readBy(c.Rules) {
			continue
		}
		r := EnvRow{Name: v.Name, Value: val.Text, Set: set, Origin: val.Origin.String(), Default: v.Default,
			Room: v.Room}
		r.Status, r.Effect = c.effect(v, f, set)
		rows = append(rows, r)
	}
	for _, n := range slices.Sorted(maps.Keys(c.unread)) {
		if w, is := unknown(c.Rules, n, c.unread[n]); is {
			row := EnvRow{
				Name: n, Value: w.Text, Set: true, Origin: w.Origin.String(),
				Status: "no effect", Effect: "no effect because " + strings.TrimSuffix(w.Problem+"; "+w.Hint,
					"; "),
			}
			if w.Problem == notModelled {
				row.Status, row.Effect = "unsupported", strings.TrimPrefix(notModelled, "is ")
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// effect says what a variable does for this configuration and machine.
func (c *Config) effect(v *Var, f Facts, set bool) (status, text string) {
	switch {
	case v.NoEffect != "":
		return "no effect", "no effect because " + v.NoEffect
	case v.missing() != "":
		return "unsupported", "not supported: " + v.missing()
	}
	if why := c.unused(v.Name, f); why != "" {
		return "no effect", "no effect because " + why
	}
	if set && (v.Kind == Number || v.Kind == Flag) {
		if n := c.Number(v.Name); !n.Set {
			return "no effect", "no effect because the value leaves it to NCCL"
		}
	}
	return "honoured", v.Meaning
}

// unused reports why an honoured variable changes nothing for these settings or on
// this machine, or "".
func (c *Config) unused(name string, f Facts) string {
	if by := overruled[name]; by != "" && c.Number(by).Set {
		return by + " is set and takes precedence"
	}
	if (name == "NCCL_P2P_LEVEL") && c.Number("NCCL_P2P_DISABLE").Value == 1 {
		return "NCCL_P2P_DISABLE=1 takes precedence"
	}
	switch given, there := c.Number("NCCL_COLLNET_ENABLE").Value == 1, c.Number("SIMCCL_COLLNET").Value !=
		0; {
	case strings.HasPrefix(name, "NCCL_COLLNET") && !there:
		return "no net plugin that reduces in the network is supposed; SIMCCL_COLLNET=1 supposes one"
	case (name == "SIMCCL_COLLNET" || name == "NCCL_COLLNET_NODE_THRESHOLD") && !given:
		return "NCCL_COLLNET_ENABLE=1 does not enable it"
	}
	if !f.Known {
		return ""
	}
	if why := c.unusedHCA(name, f); why != "" {
		return why
	}
	if f.Ranks == 1 {
		return "there is one rank, which sends nothing"
	}
	switch {
	case f.Nodes == 1 && betweenNodes[name]:
		return "there is one node and no network between nodes"
	case f.Nodes > 1 && (name == "NCCL_P2P_NVL_CHUNKSIZE" || name == "NCCL_P2P_PCI_CHUNKSIZE"):
		return "NCCL_P2P_NET_CHUNKSIZE holds for all with several nodes"
	case f.Nodes == 1 && f.AllNVLink && name == "NCCL_P2P_PCI_CHUNKSIZE":
		return "all GPUs share NVLink, for which NCCL_P2P_NVL_CHUNKSIZE holds"
	case f.Nodes == 1 && !f.AllNVLink && name == "NCCL_P2P_NVL_CHUNKSIZE":
		return "not all GPUs share NVLink, so NCCL_P2P_PCI_CHUNKSIZE holds"
	case strings.HasPrefix(name, "NCCL_NVLS") && !f.NVSwitch:
		return "there is no NVSwitch"
	case strings.HasPrefix(name, "NCCL_NVLS") && f.MinSM < 90:
		return fmt.Sprintf("NVLink multicast needs sm_90 and a GPU is sm_%d", f.MinSM)
	case name == "NCCL_LL128_C2C" && f.MinSM < 90:
		return fmt.Sprintf("it is for sm_90 and a GPU is sm_%d", f.MinSM)
	case name == "NCCL_PAT_ENABLE" && f.MinSM < 60:
		return fmt.Sprintf("PAT needs sm_60 and a GPU is sm_%d", f.MinSM)
	case (strings.HasPrefix(name, "NCCL_MNNVL") || name == "NCCL_CUMEM_ENABLE") && f.Hosts <= 1:
		return "no NVLink domain has more than one host"
	case name == "NCCL_CROSS_NIC" && f.Nets == 1:
		return "a node has one NIC"
	}
	return ""
}

// unusedHCA reports why a variable of NCCL's IB plugin chooses nothing, or "".
func (c *Config) unusedHCA(name string, f Facts) string {
	chooses := name == "NCCL_IB_HCA" && c.Text(name).Value != ""
	switch {
	case !chooses && name != "NCCL_IB_DISABLE" && name != "NCCL_IB_MERGE_NICS":
	case len(f.HCAs) == 0:
		return "no net of the machine is a device of InfiniBand or RoCE"
	case c.Topo.SocketsOnly:
		return "NCCL_NET=" + c.Text("NCCL_NET").Value + " leaves these devices out"
	case name != "NCCL_IB_DISABLE" && c.Number("NCCL_IB_DISABLE").Value != 0:
		return "NCCL_IB_DISABLE is set and leaves these devices out"
	case chooses && f.Allowed == len(f.HCAs):
		return "it allows all devices that there are: " + Listed(f.HCAs)
	}
	return ""
}

// Listed joins the first of many names.
func Listed(names []string) string {
	const shown = 16
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

// overruled names what takes precedence over a variable (graph/connect.cc:330-347).
var overruled = map[string]string{
	"NCCL_MIN_NRINGS": "NCCL_MIN_NCHANNELS",
	"NCCL_MAX_NRINGS": "NCCL_MAX_NCHANNELS",
}

// betweenNodes are the variables of the network between nodes.
var betweenNodes = map[string]bool{
	"NCCL_CROSS_NIC": true, "NCCL_PXN_DISABLE": true, "NCCL_PXN_C2C": true, "NCCL_P2P_PXN_LEVEL": true,
	"NCCL_NET_OVERHEAD": true, "NCCL_NCHANNELS_PER_NET_PEER": true, "NCCL_P2P_NET_CHUNKSIZE": true,
	"NCCL_ALLOC_P2P_NET_LL_BUFFERS": true, "NCCL_COLLNET_ENABLE": true, "NCCL_COLLNET_NODE_THRESHOLD": true,
	"NCCL_NVLSTREE_MAX_CHUNKSIZE": true, "NCCL_NET_FORCE_FLUSH": true, "NCCL_LL128_C2C": true,
}

// EnvText aligns rows for people.
func EnvText(rows []EnvRow) string {
	head := EnvRow{Name: "variable", Value: "value", Origin: "origin", Default: "default",
		Effect: "effect here"}
	cells := func(r EnvRow) [5]string {
		val, def := r.Value, r.Default
		switch {
		case r.Name == head.Name:
		case !r.Set:
			val = "-"
		case val == "":
			val = `""`
		}
		def = cmp.Or(def, "-")
		return [5]string{r.Name, val, r.Origin, def, r.Effect}
	}
	var width [5]int
	table := make([][5]string, 0, len(rows)+1)
	for _, r := range append([]EnvRow{head}, rows...) {
		row := cells(r)
		for i, s := range row {
			width[i] = max(width[i], utf8.RuneCountInString(s))
		}
		table = append(table, row)
	}
	var b strings.Builder
	for _, row := range table {
		for i, s := range row {
			if i == len(row)-1 {
				b.WriteString(s)
				break
			}
			b.WriteString(s + strings.Repeat(" ", width[i]-utf8.RuneCountInString(s)+2))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Markdown is docs/ENV.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`<!-- Code generated by dev/cmd/pages env from config/variables.txt. DO NOT EDIT. -->
# The variables of NCCL ` + rules.Default().Version() + `

What simccl does with each. Precedence: ` + "`--env K=V`" + `, then the environment, then NCCL_CONF_FILE (else ~/.nccl.conf), then
/etc/nccl.conf, then the default; ` + "`--no-env`" + ` leaves environment and default files out. Values are read as NCCL reads them:
numbers by strtoll with base 0 (0x10 and 010 are 16 and 8, text is 0), and a file fills only what is not set yet.
A form with a range is refused outside of it, because NCCL fails with such a value; the error says why.
` + "`simccl env`" + ` shows the values in force, where each comes from and what it changes here.

`)
	section := func(title string, keep func(*Var) bool, note func(*Var) string) {
		n := 0
		var rows strings.Builder
		for i := range vars {
			v := &vars[i]
			if !keep(v) {
				continue
			}
			n++
			def := cmp.Or(v.Default, "–")
			fmt.Fprintf(&rows, "| `%s` | %s | %s | %s | %s | `%s` | %s |\n", v.Name, form(v), mdEscape(def),
				mdEscape(v.Meaning), mdEscape(note(v)), v.Source, spanText(v.In()))
		}
		fmt.Fprintf(&b, "## %s (%d)\n\n", title, n)
		b.WriteString("| variable | form | default | meaning | here | NCCL | releases " +
			"|\n|---|---|---|---|---|---|---|\n")
		b.WriteString(rows.String() + "\n")
	}
	section("Honoured", (*Var).Honoured, func(v *Var) string { return "by " + v.Room })
	section("Not supported", func(v *Var) bool { return v.missing() != "" }, (*Var).missing)
	section("Without effect", func(v *Var) bool { return v.NoEffect != "" }, func(v *Var) string {
		return v.NoEffect
	})
	return strings.TrimSuffix(b.String(), "\n")
}

// spanText says which releases read a variable, of those from 2.21.5 on.
func spanText(s rules.Span) string {
	var parts []string
	none := rules.Release{}
	if s.Since != none {
		parts = append(parts, "from "+s.Since.String())
	}
	if s.Until != none {
		parts = append(parts, "before "+s.Until.String())
	}
	return cmp.Or(strings.Join(parts, ", "), "all")
}

// form is a variable's kind, with the range in which NCCL works with it.
func form(v *Var) string {
	r, ok := spans[v.Name]
	switch {
	case !ok:
		return v.Kind.String()
	case r.off:
		return fmt.Sprintf("%s, 0 or %d to %d", v.Kind, r.least, r.most)
	}
	return fmt.Sprintf("%s, %d to %d", v.Kind, r.least, r.most)
}

func mdEscape(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
