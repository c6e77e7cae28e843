package decision

import (
	"fmt"
	"strings"
)

// namer describes places in documents with NCCL's terms.
type namer struct{ want, got map[string]any }

// quantities are the words for keys of documents; a key that is not here is its own.
var quantities = map[string]string{
	"reference": "version", "nNodes": "nodes", "gpusPerNode": "GPUs per node", "nRanks": "ranks",
	"topoXml": "topology file", "graphXml": "graph file", "nChannels": "channels",
	"bwIntra": "intra bandwidth", "bwInter": "inter bandwidth",
	"typeIntra": "intra type", "typeInter": "inter type", "sameChannels": "same channels",
	"crossNic": "cross NIC", "latencyInter": "inter latency",
	"nHops": "hops", "minChannels": "min channels", "maxChannels": "max channels",
	"collChannels": "collective channels", "nvlsChannels": "NVLS channels",
	"nvlsChunkSize": "NVLS chunk size", "p2pnChannels": "p2p channels",
	"p2pnChannelsPerPeer": "p2p channels per peer", "p2pChunkSize": "p2p chunk size",
	"isAllNvlink": "all NVLink", "cpuArch": "CPU architecture", "cpuVendor": "CPU vendor",
	"maxTreePattern": "tree pattern", "ringOrder": "ring orders",
	"maxBw": "max bandwidth", "totalBw": "total bandwidth", "inter": "inter-node", "bw": "bandwidth",
	"sm": "compute capability", "gdr": "GPU Direct RDMA",
	"localGpu": "local GPU", "coll": "CollNet", "latencies": "latency", "bandwidths": "bandwidth",
	"threadThresholds": "thread threshold", "maxThreads": "max threads",
	"treeUp": "tree up", "treeDown": "tree down", "headRank": "head", "nHeads": "heads", "nvls": "NVLS",
	"gpus": "GPUs", "pci": "PCI switches", "nvs": "NVSwitches",
	"cpus": "CPUs", "nics": "NICs", "nets": "NETs", "nWarps": "warps", "gins": "GINs", "devs": "DEVs",
	"graphsFinal": "graphs of all ranks",
}

func quantity(key string) string {
	if word, ok := quantities[key]; ok {
		return word
	}
	return printable(key)
}

// kinds are NCCL's words for the nodes of a list, and numbered whether its nodes
// are named by their number rather than by their id.
var kinds = map[string]struct {
	word     string
	numbered bool
}{"gpus": {"GPU", true}, "nets": {"NET", true}, "pci": {"PCI", false}, "nvs": {"NVS", false},
	"cpus": {"CPU", true}, "nics": {"NIC", false},
	"gins": {"GIN", true}, "devs": {"DEV", true}}

// matrices are the ends of the paths of each matrix.
var matrices = map[string][2]string{"gpuGpu": {"GPU", "GPU"}, "gpuNet": {"GPU", "NET"},
	"netGpu": {"NET", "GPU"}, "gpuCpu": {"GPU", "CPU"},
	"gpuNvs": {"GPU", "NVS"}, "netCpu": {"NET", "CPU"}}

// isPath reports whether a place is one path of a matrix.
func isPath(at []any) bool { return len(at) == 4 && at[0] == "paths" }

// isOrder reports whether a place is a list that is compared as a whole: the order of a ring, the GPUs or
// nets of a channel, the route of a path.
func isOrder(at []any) bool {
	last := at[len(at)-1]
	switch at[0] {
	case "channels":
		return len(at) == 3 && at[1] == "ringOrder"
	case "graphs", "domains":
		return last == "intra" || last == "inter" || last == "ranks"
	}
	return at[0] == "notes"
}

// name returns words for a place in the document: "channel 3 ring order".
func (n *namer) name(at []any) string {
	rest := at[1:]
	switch at[0] {
	case "env":
		return "setting" + plain(rest)
	case "paths":
		return pathName(rest)
	case "graphs":
		return n.graph("graph", at)
	case "graphsFinal":
		return n.graph("graph of all ranks", at)
	case "domains":
		if len(rest) > 2 && rest[1] == "graphs" {
			return fmt.Sprintf("domain %v %s", rest[0], n.graph("graph", at))
		}
		return "domain" + plain(rest)
	case "system":
		return n.node(rest)
	case "channels":
		return channelName(rest)
	case "tuning":
		return tuningName(rest)
	}
	return strings.TrimPrefix(plain(at), " ")
}

// plain formats a place as words separated by blanks.
func plain(at []any) string {
	var b strings.Builder
	for _, step := range at {
		b.WriteByte(' ')
		switch s := step.(type) {
		case string:
			b.WriteString(quantity(s))
		case atLine:
			fmt.Fprintf(&b, "line %d", int(s))
		default:
			fmt.Fprint(&b, s)
		}
	}
	return b.String()
}

// at returns the value at a place of the current document, else of the stored one.
func (n *namer) at(place ...any) any {
	for _, doc := range []any{n.got, n.want} {
		v := doc
		for _, step := range place {
			switch s := step.(type) {
			case string:
				m, _ := v.(map[string]any)
				v = m[s]
			case int:
				list, _ := v.([]any)
				if v = nil; s < len(list) {
					v = list[s]
				}
			}
		}
		if v != nil {
			return v
		}
	}
	return nil
}

// graph returns a place in a list of graphs: "ring graph channel 3 order".
func (n *namer) graph(word string, at []any) string {
	list := 1 // elements before the index of the graph
	if at[0] == "domains" {
		list = 3
	}
	if len(at) <= list {
		return "graphs" + plain(at[1:])
	}
	graph, _ := n.at(append(at[:list+1:list+1], "name")...).(string)
	if graph == "" {
		graph = fmt.Sprint(at[list])
	}
	name, rest := printable(graph)+" "+word, at[list+1:]
	if len(rest) > 2 && rest[0] == "channels" {
		switch rest[2] {
		case "intra":
			return fmt.Sprintf("%s channel %v order", name, rest[1])
		case "inter":
			return fmt.Sprintf("%s channel %v NETs", name, rest[1])
		}
	}
	return name + plain(rest)
}

// node returns words for a place in section system: "GPU 3 link 1 bandwidth".
func (n *namer) node(at []any) string {
	if len(at) < 2 {
		return "system" + plain(at)
	}
	list, _ := at[0].(string)
	k, known := kinds[list]
	name := fmt.Sprintf("%s %v", k.word, at[1])
	if id, ok := n.at("system", list, at[1], "id").(string); ok && !k.numbered {
		name = printable(id)
	}
	if !known {
		return "system" + plain(at)
	}
	if len(at) > 3 && at[2] == "links" {
		return fmt.Sprintf("%s link %v%s", name, at[3], plain(at[4:]))
	}
	return name + plain(at[2:])
}

// pathName returns a place in section paths: "path GPU 0 → NET 1".
func pathName(at []any) string {
	if len(at) > 0 {
		list, _ := at[0].(string)
		if ends, ok := matrices[list]; ok {
			switch len(at) {
			case 1:
				return "paths " + ends[0] + " → " + ends[1]
			case 2:
				return fmt.Sprintf("paths %s %v → %s", ends[0], at[1], ends[1])
			case 3:
				return fmt.Sprintf("path %s %v → %s %v", ends[0], at[1], ends[1], at[2])
			}
		}
	}
	return "paths" + plain(at)
}

// pathText formats a path as NCCL does, with its route if everything else equals the other path's.
func pathText(v, other any) string {
	p, ok := v.(map[string]any)
	o, _ := other.(map[string]any)
	if !ok {
		return field{v, true}.String()
	}
	text := fmt.Sprintf("%s %s GB/s %s hops", field{p["type"], true}, field{p["bw"], true},
		field{p["hops"], true})
	if equal(p["type"], o["type"]) && equal(p["bw"], o["bw"]) && equal(p["hops"], o["hops"]) {
		text += " via " + field{p["via"], true}.String()
	}
	return text
}

// neighbours are the ranks that a rank has on a channel, in the order of the document.
var neighbours = [...]string{"ring prev", "ring next", "tree up", "tree down 0", "tree down 1", "tree down 2"}

// channelName returns a place in section channels: "channel 3 ring order", "rank 0 channel 3 ring next".
func channelName(at []any) string {
	switch {
	case len(at) == 2 && at[0] == "ringOrder":
		return fmt.Sprintf("channel %v ring order", at[1])
	case len(at) == 5 && at[0] == "ranks" && at[2] == "ch":
		name := fmt.Sprintf("rank %v channel %v", at[1], at[3])
		if i, ok := at[4].(int); ok && i < len(neighbours) {
			return name + " " + neighbours[i]
		}
		return name + plain(at[4:])
	case len(at) > 1 && at[0] == "ranks":
		if len(at) > 3 && at[2] == "nvls" {
			return fmt.Sprintf("rank %v NVLS channel %v%s", at[1], at[3], plain(at[4:]))
		}
		return fmt.Sprintf("rank %v%s", at[1], plain(at[2:]))
	case len(at) == 1 && at[0] != "ranks" && at[0] != "nNodes":
		return strings.TrimPrefix(plain(at), " ")
	}
	return "channels" + plain(at)
}

// tuningName returns a place in section tuning: "tuning table AllReduce Ring LL128 latency".
func tuningName(at []any) string {
	if len(at) < 3 {
		return "tuning table" + plain(at)
	}
	list, _ := at[0].(string)
	cell, rest := "", at[1:]
	if f, ok := rest[0].(int); ok && len(rest) == 3 {
		if f >= len(funcs) {
			return "tuning table" + plain(at)
		}
		cell, rest = " "+funcs[f].String(), rest[1:]
	}
	pair, ok := cellName(rest)
	if !ok {
		return "tuning table" + plain(at)
	}
	return "tuning table" + cell + " " + pair + " " + quantity(list)
}

// cellName returns the names of the algorithm and protocol with two indices.
func cellName(at []any) (string, bool) {
	if len(at) != 2 {
		return "", false
	}
	a, okA := at[0].(int)
	p, okP := at[1].(int)
	if !okA || !okP || a >= len(algorithms) || p >= len(protocols) {
		return "", false
	}
	return algorithms[a].String() + " " + protocols[p].String(), true
}
