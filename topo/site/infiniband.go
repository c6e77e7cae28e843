package site

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
)

// laneGbit is the rate of an InfiniBand lane, Gbit/s of data as the names of speeds are used.
var laneGbit = map[string]float64{"SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25,
	"HDR": 50,
	"NDR": 100, "XDR": 200}

var (
	ibNode = regexp.MustCompile(`^(Switch|Ca|Rt)\s+(\d+)\s+"([SHR])-([0-9a-fA-F]+)"\s*(?:#\s*"([^"]*)")?`)
	ibPort = regexp.MustCompile(
		`^\[(\d+)\](?:\[[^\]]*\])?(?:\(([0-9a-fA-F]+)\))?\s+"([SHR])-([0-9a-fA-F]+)"\[(\d+)\](?:\[[^\]]*\])?(?:\(([0-9a-fA-F]+)\))?\s*(?:#(.*))?$`)
	ibRate = regexp.MustCompile(`\b(\d+)x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\b`)
)

// ibReader reads the output of ibnetdiscover (infiniband-diags): a block a node, with the GUID, the number of
// ports and the node description; in it a line a port with the far end and, as a comment, width and speed.
type ibReader struct {
	p     *Plan
	o     *Options
	file  string
	names map[string]string // node GUID → device
	nics  map[string]string // GUID of a channel adapter → name of its net
	node  string            // of the block
	ports int
}

// InfiniBand reads the cables from the output of ibnetdiscover.
func InfiniBand(data []byte, file string, o Options) (*Plan, error) {
	r := &ibReader{p: newPlan(), o: &o, file: file, names: map[string]string{}, nics: map[string]string{}}
	r.p.files = []string{file}
	lines := strings.Split(string(data), "\n")
	for pass := range 2 { // names first: a port's line may come before its far end's block
		r.node = ""
		for i, line := range lines {
			line = strings.TrimRight(line, " \t\r")
			if line == "" || line[0] == '#' {
				continue
			}
			var err error
			if pass == 0 {
				err = r.block(line, i+1)
			} else {
				err = r.port(line, i+1)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return r.p, nil
}

func (r *ibReader) bad(line int, hint, format string, args ...any) error {
	return fault(r.file, line, 1, hint, format, args...)
}

// block reads the heading of a node's block: a switch, channel adapter or router with its GUID.
func (r *ibReader) block(line string, at int) error {
	m := ibNode.FindStringSubmatch(line)
	if m == nil {
		if word, _, _ := strings.Cut(line, " "); word == "Switch" || word == "Ca" || word == "Rt" {
			return r.bad(at, `a node is Switch 41 "S-b8599f0300fc6de4" # "leaf1"`, "no node: %s",
				termtext.Quote(line, 60))
		}
		return nil
	}
	guid, desc := strings.ToLower(m[4]), strings.TrimSpace(m[5])
	if r.names[guid] != "" {
		return r.bad(at, "give the output of one run", "GUID %s is there twice", guid)
	}
	kind, name := isSwitch, switchName(desc, guid)
	if m[1] == "Ca" {
		kind = isHost
		name, r.nics[guid] = r.adapter(desc, guid)
	}
	for n := 2; kind == isSwitch && r.taken(name); n++ {
		name = fmt.Sprintf("%s-%d", switchName(desc, guid), n)
	}
	r.names[guid] = name
	if err := r.p.device(name, kind); err != nil {
		return r.bad(at, "", "%v", err)
	}
	return nil
}

func (r *ibReader) taken(name string) bool { _, ok := r.p.roles[name]; return ok }

// switchName returns the name in a switch's description: "MF0;leaf1:MQM8700/U1" and "leaf1" are leaf1.
func switchName(desc, guid string) string {
	_, name, ok := strings.Cut(desc, ";")
	if !ok {
		name = desc
	}
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimSpace(name)
	if name == "" || strings.Contains(name, "Mellanox") || strings.Contains(name, "Quantum") {
		return "switch-" + guid
	}
	return strings.ReplaceAll(name, " ", "-")
}

// adapter returns the host and net of a channel adapter: by GUID, else from a description that the driver or
// rdma-ndd writes, such as "node001 mlx5_0" or "node001 HCA-1".
func (r *ibReader) adapter(desc, guid string) (host, net string) {
	if g, err := strconv.ParseUint(guid, 16, 64); err == nil {
		if nic, ok := r.o.GUIDs[g]; ok {
			return nic.Host, nic.Net
		}
	}
	words := strings.Fields(desc)
	if len(words) == 2 && !strings.Contains(desc, ";") {
		return strings.Trim(words[0], "'"), strings.Trim(words[1], "'")
	}
	if len(words) == 1 {
		r.p.assume("adapters whose description names no device are numbered by the GUID, %s first", guid)
		return words[0], "guid-" + guid
	}
	r.p.assume("the description %q names no host: adapter %s is a host of its own (--topo of the hosts "+
		"matches them "+
		"by GUID)", termtext.Short(desc, 60), guid)
	return "host-" + guid, "guid-" + guid
}

// port reads a port's line and records its cable.
func (r *ibReader) port(line string, at int) error {
	if m := ibNode.FindStringSubmatch(line); m != nil {
		r.node = strings.ToLower(m[4])
		r.ports, _ = strconv.Atoi(m[2])
		return nil
	}
	if line[0] != '[' {
		if key, _, ok := strings.Cut(line, "="); !ok || strings.ContainsAny(key, " \t[]\"") {
			return r.bad(at, `a line is vendid=…, Switch …, Ca … or [1] "S-…"[2]`, "not understood: %s",
				termtext.Quote(line, 60))
		}
		return nil
	}
	m := ibPort.FindStringSubmatch(line)
	if m == nil {
		return r.bad(at, `a port is [1] "H-b8599f0300aaaa01"[1] # "node1 mlx5_0" lid 4 4xNDR`, "no port: %s",
			termtext.Quote(line, 60))
	}
	if r.node == "" {
		return r.bad(at, "the file has lost lines", "a port before any Switch or Ca")
	}
	far := strings.ToLower(m[4])
	if r.names[far] == "" {
		return r.bad(at, "give the whole output", "port %s leads to GUID %s, which has no block here", m[1],
			far)
	}
	if n, _ := strconv.Atoi(m[1]); n < 1 || n > r.ports {
		return r.bad(at, "", "port %s of a node of %d ports", m[1], r.ports)
	}
	gbit := 0.0
	if s := ibRate.FindStringSubmatch(m[7]); s != nil {
		width, _ := strconv.Atoi(s[1])
		if gbit = float64(width) * laneGbit[s[2]]; width < 1 || width > 12 {
			return r.bad(at, "width and speed are like 4xNDR", "speed %s", s[0])
		}
	}
	if len(r.p.cables) >= 2*maxCables {
		return r.bad(at, "describe a smaller network", "more than %d cables", maxCables)
	}
	r.p.cables = append(r.p.cables, cable{a: r.end(r.node, m[1]), b: r.end(far, m[5]), gbit: gbit, count: 1,
		file: r.file, line: at})
	return nil
}

// end returns a port by names: of a host its adapter, whose further ports have a number.
func (r *ibReader) end(guid, port string) end {
	if nic, ok := r.nics[guid]; ok {
		if port != "1" {
			nic += ":" + port
		}
		return end{r.names[guid], nic}
	}
	return end{r.names[guid], port}
}
