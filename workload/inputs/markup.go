package inputs

import (
	"bytes"
	"fmt"

	"github.com/simccl/simccl/topo/lstopo"
)

// markup recognises XML and HTML by the outermost element.
func (v *Verdict) markup(from int) {
	text := v.Text
	at, name := element(text, from)
	switch {
	case name == "system":
		v.add(topologyKind(text[at:]), at)
	case name == "graphs":
		v.add(Graphs, at)
	case name == "algo":
		v.add(MSCCL, at)
	case name == "nvidia_smi_log":
		v.add(SmiXML, at)
	case name == "topology" && lstopo.Is(string(text[from:min(len(text), from+headSize)])):
		v.add(Lstopo, at)
	case name == "html":
		v.text(from) // a text saved as a web page
		v.Note = "a page of HTML; save the text itself"
	case name != "":
		v.Note = fmt.Sprintf("XML with the outermost element <%s>", name)
	}
}

// element returns the place and the name of the first element of XML, "" for none.
func element(text []byte, at int) (int, string) {
	for at < len(text) {
		at += len(text[at:]) - len(bytes.TrimLeft(text[at:], " \t\r\n"))
		rest := text[at:]
		end := 0
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			end = bytes.Index(rest, []byte("-->")) + 3
		case bytes.HasPrefix(rest, []byte("<?")):
			end = bytes.Index(rest, []byte("?>")) + 2
		case bytes.HasPrefix(bytes.ToLower(rest[:min(len(rest), 14)]), []byte("<!doctype html")):
			return at, "html"
		case bytes.HasPrefix(rest, []byte("<!")):
			end = bytes.IndexByte(rest, '>') + 1
		case bytes.HasPrefix(rest, []byte("<")):
			n := bytes.IndexAny(rest[1:min(len(rest), 66)], " \t\r\n/>")
			return at, string(bytes.ToLower(rest[1 : 1+max(0, n)]))
		default:
			return at, ""
		}
		if end < 4 {
			return at, ""
		}
		at += end
	}
	return at, ""
}

// topologyKind distinguishes NCCL's topology files from RCCL's.
func topologyKind(text []byte) Kind {
	tag, _, _ := bytes.Cut(text, []byte(">"))
	// RCCL's files have version 2 (src/graph/xml.h of RCCL 2.30.4) and the GPUs' architecture.
	if value(tag, "version") == "2" || bytes.Contains(text, []byte("<xgmi")) ||
		bytes.Contains(text, []byte(` gcn="`)) {
		return AMDTopology
	}
	gpus, hosts := false, map[string]bool{}
	for rest := text; ; {
		i := bytes.IndexByte(rest, '<')
		if i < 0 {
			break
		}
		rest = rest[i:]
		if bytes.HasPrefix(rest, []byte("<!--")) {
			end := bytes.Index(rest, []byte("-->"))
			if end < 0 {
				break
			}
			rest = rest[end:]
			continue
		}
		tag, _, _ := bytes.Cut(rest[:min(len(rest), 4096)], []byte(">"))
		switch {
		case bytes.HasPrefix(tag, []byte("<gpu")):
			gpus = true
		case bytes.HasPrefix(tag, []byte("<cpu")):
			if h := value(tag, "host_hash"); h != "" {
				hosts[h] = true
			}
		}
		rest = rest[1:]
	}
	switch {
	case !gpus:
		return Template
	case len(hosts) > 1:
		return TopologyHosts
	}
	return Topology
}

// value returns an attribute of a tag, "" without it.
func value(tag []byte, name string) string {
	_, rest, ok := bytes.Cut(tag, []byte(" "+name+`="`))
	if !ok {
		return ""
	}
	v, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(v)
}
