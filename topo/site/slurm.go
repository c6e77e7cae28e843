package site

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
	"go.yaml.in/yaml/v3"
)

// tree is the content of Slurm's topology files: the switches and nodes below each switch.
type tree struct {
	p     *Plan
	file  string
	below map[string][]string
	above map[string][]string
	line  map[string]int
	block bool
}

func newTree(file string) *tree {
	t := &tree{p: newPlan(), file: file, below: map[string][]string{}, above: map[string][]string{},
		line: map[string]int{}}
	t.p.files = []string{file}
	return t
}

// Slurm reads topology.conf, of the plugins topology/tree and topology/block: lines of SwitchName=,
// Switches=, Nodes=, BlockName=, BlockSizes=; names ignore case, # begins a comment.
func Slurm(data []byte, file string, o Options) (*Plan, error) {
	t := newTree(file)
	for i, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		values := map[string]string{}
		for _, word := range strings.Fields(line) {
			key, value, ok := strings.Cut(word, "=")
			col := 1 + strings.Index(line, word)
			key = strings.ToLower(key)
			if !ok || value == "" {
				return nil, fault(file, i+1, col, "a line is SwitchName=s1 Nodes=node[1-8]",
					"no KEY=VALUE: %s",
					termtext.Quote(word, 40))
			}
			switch key {
			case "switchname", "switches", "nodes", "linkspeed", "blockname", "blocksizes":
			default:
				return nil,
					fault(file, i+1, col,
						"known are SwitchName, Switches, Nodes, LinkSpeed, BlockName, BlockSizes",
						"unknown key %s", termtext.Quote(key, 40))
			}
			values[key] = value
		}
		if err := t.add(values, i+1); err != nil {
			return nil, err
		}
	}
	return t.plan(o)
}

// add records one line or entry: a switch or block and its members.
func (t *tree) add(v map[string]string, line int) error {
	name := v["switchname"]
	if v["blockname"] != "" {
		name, t.block = v["blockname"], true
	}
	if name == "" {
		if v["blocksizes"] != "" {
			return nil
		}
		return fault(t.file, line, 1, "a line begins with SwitchName= or BlockName=",
			"a switch without a name")
	}
	if t.line[name] != 0 {
		return fault(t.file, line, 1, "", "%s is described in line %d already", termtext.Short(name, 0),
			t.line[name])
	}
	t.line[name] = line
	if err := t.p.device(name, isSwitch); err != nil {
		return fault(t.file, line, 1, "", "%v", err)
	}
	if v["nodes"] == "" && v["switches"] == "" {
		return fault(t.file, line, 1, "write Nodes= or Switches=", "%s has nothing below it",
			termtext.Short(name, 0))
	}
	for i, key := range []string{"nodes", "switches"} {
		role := []role{isHost, isSwitch}[i]
		//lint:sorted one of them is there
		list, err := Hostlist(v[key])
		if err != nil {
			return fault(t.file, line, 1, "lists are like node[01-16,20],login1", "%s of %s: %v", key,
				termtext.Short(name, 0), err)
		}
		for _, c := range list {
			if err := t.p.device(c, role); err != nil {
				return fault(t.file, line, 1, "", "%v", err)
			}
			if role == isHost && len(t.above[c]) > 0 {
				return fault(t.file, line, 1, "a node has one switch", "node %s is below %s already",
					termtext.Short(c, 0),
					t.above[c][0])
			}
			if t.line[c] == 0 && role == isHost {
				t.line[c] = line
			}
			t.below[name], t.above[c] = append(t.below[name], c), append(t.above[c], name)
		}
	}
	return nil
}

// plan converts the tree of switches to a Plan and adds cables (even), since Slurm's files name no ports.
func (t *tree) plan(o Options) (*Plan, error) {
	roots, blocks := 0, []string{}
	for _, d := range t.p.order {
		if t.p.roles[d] == isSwitch {
			if t.line[d] == 0 {
				return nil, fault(t.file, t.line[t.above[d][0]], 1, "describe it: SwitchName="+d+" Nodes=…",
					"switch %s has no line of its own", termtext.Short(d, 0))
			}
			if len(t.above[d]) == 0 {
				roots++
				blocks = append(blocks, d)
			}
		}
	}
	if up := t.loop(); up != "" {
		return nil, fault(t.file, t.line[up], 1, "", "switch %s is above itself", termtext.Short(up, 0))
	}
	if t.block && len(blocks) > 1 {
		if err := t.p.device("above-blocks", isSwitch); err != nil {
			return nil, fault(t.file, 1, 1, "", "%v", err)
		}
		for _, b := range blocks {
			t.above[b] = []string{"above-blocks"}
			t.below["above-blocks"] = append(t.below["above-blocks"], b)
		}
		t.p.assume("what joins blocks is not in the file: one switch, above-blocks")
		t.p.assume("hosts of a block are joined by one switch here; where a block is an NVLink domain, " +
			"--mnnvl says so")
	} else if roots > 1 && t.apart(blocks) {
		t.p.assume("%d switches have none above them: their parts are not connected where they share none "+
			"below", roots)
	}
	t.p.assume("Slurm's file names no ports: %d nets a host, %g Gbit/s each, all to its switch (--nets, "+
		"--gbit)", o.Nets,
		o.Gbit)
	t.p.assume("uplinks of a switch carry its ports to hosts over %g, an equal part to each switch above "+
		"(--oversub)",
		o.Oversub)
	t.p.even(t.below, t.above, o, t.file, t.line)
	return t.p, nil
}

// apart reports whether switches at the top share none below.
func (t *tree) apart(tops []string) bool {
	for _, s := range tops {
		for _, c := range t.below[s] {
			if len(t.above[c]) > 1 {
				return false
			}
		}
	}
	return true
}

// loop finds a switch that is above itself, "" where there is none.
func (t *tree) loop() string {
	state := map[string]int{} // 1 on the way, 2 done
	var visit func(s string, depth int) string
	visit = func(s string, depth int) string {
		if state[s] == 1 || depth > 64 {
			return s
		}
		if state[s] == 2 {
			return ""
		}
		state[s] = 1
		for _, c := range t.below[s] {
			if found := visit(c, depth+1); found != "" {
				return found
			}
		}
		state[s] = 2
		return ""
	}
	for _, d := range t.p.order {
		if found := visit(d, 0); found != "" {
			return found
		}
	}
	return ""
}

// slurmTopology is an entry of topology.yaml.
type slurmTopology struct {
	Topology string `yaml:"topology"`
	Default  bool   `yaml:"cluster_default"`
	Flat     bool   `yaml:"flat"`
	Tree     *struct {
		Switches []struct {
			Switch   string    `yaml:"switch"`
			Children yaml.Node `yaml:"children"`
			Nodes    yaml.Node `yaml:"nodes"`
		} `yaml:"switches"`
	} `yaml:"tree"`
	Block *struct {
		Sizes  []int `yaml:"block_sizes"`
		Blocks []struct {
			Block string    `yaml:"block"`
			Nodes yaml.Node `yaml:"nodes"`
		} `yaml:"blocks"`
	} `yaml:"block"`
}

// SlurmYAML reads topology.yaml: of several topologies the default one, else the first that is a tree or has
// blocks.
func SlurmYAML(data []byte, file string, o Options) (*Plan, error) {
	var all []slurmTopology
	if err := yaml.Unmarshal(data, &all); err != nil {
		return nil, fault(file, yamlLine(err), 1, "topology.yaml is a list of topologies", "%v",
			strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: "))
	}
	var best *slurmTopology
	for i := range all {
		x := &all[i]
		if (x.Tree != nil || x.Block != nil) && (best == nil || x.Default && !best.Default) {
			best = x
		}
	}
	if best == nil {
		return nil, fault(file, 1, 1, "write tree: or block: into one",
			"no topology here is a tree or has blocks")
	}
	t := newTree(file)
	if len(all) > 1 {
		t.p.assume("of %d topologies in the file %s is taken", len(all), termtext.Short(best.Topology, 60))
	}
	if best.Tree != nil {
		for i := range best.Tree.Switches {
			s := &best.Tree.Switches[i]
			v := map[string]string{"switchname": s.Switch, "switches": s.Children.Value,
				"nodes": s.Nodes.Value}
			if err := t.add(v, max(s.Children.Line, s.Nodes.Line, 1)); err != nil {
				return nil, err
			}
		}
		return t.plan(o)
	}
	for i := range best.Block.Blocks {
		b := &best.Block.Blocks[i]
		if err := t.add(map[string]string{"blockname": b.Block, "nodes": b.Nodes.Value},
			max(b.Nodes.Line, 1)); err != nil {
			return nil, err
		}
	}
	return t.plan(o)
}

// yamlLine returns the line that an error of the module names; 1 without one.
func yamlLine(err error) int {
	var n int
	if i := strings.Index(err.Error(), "line "); i >= 0 {
		fmt.Sscanf(err.Error()[i:], "line %d", &n)
	}
	return max(n, 1)
}

// maxHosts bounds what a list names: a few bytes can name millions.
const maxHosts = 1 << 20

// Hostlist expands a list as Slurm writes it: "node[01-16,20],rack[1-2]gpu[1-4]". Numbers keep their zeros.
func Hostlist(list string) ([]string, error) {
	var out []string
	for list != "" {
		depth, i := 0, 0
		for ; i < len(list) && (list[i] != ',' || depth > 0); i++ {
			switch list[i] {
			case '[':
				depth++
			case ']':
				depth--
			}
			if depth < 0 || depth > 1 {
				return nil, fmt.Errorf("brackets of %s do not match", termtext.Quote(list, 40))
			}
		}
		if depth != 0 {
			return nil, fmt.Errorf("a bracket of %s is not closed", termtext.Quote(list, 40))
		}
		item := list[:i]
		if list = strings.TrimPrefix(list[i:], ","); item == "" {
			return nil, fmt.Errorf("a name is missing between commas")
		}
		names, err := expand(item)
		if err != nil {
			return nil, err
		}
		if out = append(out, names...); len(out) > maxHosts {
			return nil, fmt.Errorf("more than %d names", maxHosts)
		}
	}
	return out, nil
}

// expand returns the names of an item with brackets: node[1-3] is node1, node2 and node3.
func expand(item string) ([]string, error) {
	before, rest, ok := strings.Cut(item, "[")
	if !ok {
		return []string{item}, nil
	}
	inside, after, _ := strings.Cut(rest, "]")
	tails, err := expand(after)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, part := range strings.Split(inside, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		if !ranged {
			hi = lo
		}
		from, err1 := strconv.Atoi(lo)
		to, err2 := strconv.Atoi(hi)
		if err1 != nil || err2 != nil || from < 0 || to < from {
			return nil, fmt.Errorf("%s is no number or range, as 3 or 01-16", termtext.Quote(part, 40))
		}
		if (to-from+1)*len(tails) > maxHosts-len(out) {
			return nil, fmt.Errorf("%s names more than %d", termtext.Quote(item, 40), maxHosts)
		}
		for n := from; n <= to; n++ {
			for _, tail := range tails {
				out = append(out, fmt.Sprintf("%s%0*d%s", before, len(lo), n, tail))
			}
		}
	}
	return out, nil
}
