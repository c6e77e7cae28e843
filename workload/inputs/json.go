package inputs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/workload/calls"
	"github.com/simccl/simccl/workload/chakra"
	"github.com/simccl/simccl/workload/flight"
	"github.com/simccl/simccl/workload/internal/torch"
	"github.com/simccl/simccl/workload/nccllog"
)

// json recognises what begins with a bracket or a brace.
func (v *Verdict) json(from int) {
	head := v.Text[from:min(len(v.Text), from+headSize)]
	m := membersOf(head)
	k := recorded(head)
	if k == Unknown {
		k = described(head, m)
	}
	if k == Unknown && len(m.names) > 0 {
		v.Note = fmt.Sprintf("JSON with the members %s", strings.Join(m.names[:min(len(m.names), 6)], ", "))
		return
	}
	if k != Unknown {
		v.add(k, from)
	}
}

// has reports whether a text has all of some words as JSON strings.
func has(text []byte, words ...string) bool {
	for _, w := range words {
		if !bytes.Contains(text, []byte(`"`+w+`"`)) {
			return false
		}
	}
	return true
}

// recorded recognises JSON recordings and the files of other simulators.
func recorded(head []byte) Kind {
	switch {
	case calls.Recognise(head):
		return Calls
	case has(head, "threadblocks", "gpus"), has(head, "input_chunks", "gpus"):
		return MSCCLPlus
	case has(head, "intranode_sketch"), has(head, "symmetry_offsets"):
		return TACCL
	case has(head, "scheduling-policy"), has(head, "all-reduce-implementation"):
		return AstraSystem
	case nccllog.RecogniseInspector(head):
		return Inspector
	case has(head, "schemaVersion", "deviceProperties"), has(head, "schemaVersion", "distributedInfo"):
		return Kineto
	case has(head, "traceEvents"), head[0] == '[' && has(head, "ph", "ts"):
		if has(head, "schemaVersion") || has(head, "cpu_op") || has(head, "Trace name") ||
			has(head, "External id") || has(head, "correlation") {
			return Kineto
		}
		return ChromeTrace
	case chakra.RecogniseJSON(head):
		return ChakraJSON
	case torch.Recognise(head):
		return TorchET
	case flight.RecogniseJSON(head):
		return FlightJSON
	}
	return Unknown
}

// described recognises JSON documents by their outermost members.
func described(head []byte, m members) Kind {
	switch {
	case m.has("scenario"):
		return Scenario
	case m.has("base") && (m.has("grid") || m.has("list") || m.has("zip") || m.has("sweep") ||
		m.has("seeds")):
		return Sweep
	case m.has("switches"), m.has("cables"):
		return Fabric
	case has(head, "simccl network class"):
		return NetworkClass
	case has(head, "simccl machine class"):
		return MachineClass
	case m.has("nNodes") && m.has("topoXml"), m.has("nRanks") && m.has("selection"):
		return Decision
	case m.has("gpu") && m.has("numa"), m.has("cpu") && m.has("groups"):
		return MachineSpec
	case m.has("results") && (m.has("config") || m.has("nccl_version") || m.has("start_time")):
		return TestJSON
	case m.has("mode") && m.has("world") && m.has("env"):
		return Meta
	case m.has("variants") && (m.has("mode") || m.has("step_ms")):
		return StepTimes
	case m.has("lldp"), has(head, "lldp", "chassis"):
		return LLDP
	case m.has("items") && m.has("kind") && (has(head, "nodeInfo") || has(head, "Node") ||
		has(head, "nodeName")):
		return KubernetesNodes
	case (m.has("architectures") || m.has("model_type")) && m.has("hidden_size"), m.has("hidden_size") &&
		m.has("num_hidden_layers"), m.has("text_config") && has(head, "hidden_size"):
		return HFConfig
	case len(m.names) > 0 && m.lists && !slices.ContainsFunc(m.names, notNumber):
		return ChakraGroups
	case m.has("key") && m.has("point"), m.has("sweep") && m.has("digest"):
		return SweepResults
	}
	return Unknown
}

func notNumber(s string) bool {
	return s == "" || strings.Trim(s, "0123456789") != ""
}

// members are the names of the outermost members of a JSON object, as far as it was read.
type members struct {
	names []string
	lists bool // the value of the first one is a list
}

func (m members) has(name string) bool { return slices.Contains(m.names, name) }

// membersOf lists the members of the object that a text begins with. The text may be cut.
func membersOf(text []byte) (m members) {
	if len(text) == 0 || text[0] != '{' {
		return m
	}
	depth, name := 0, true
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return m
			}
		case ',':
			name = true
		case '"':
			end := quoted(text, i)
			if end < 0 {
				return m
			}
			after := bytes.TrimLeft(text[end+1:], " \t\r\n")
			if depth == 1 && name && len(after) > 0 && after[0] == ':' {
				if m.names = append(m.names, string(text[i+1:end])); len(m.names) == 1 {
					m.lists = bytes.HasPrefix(bytes.TrimLeft(after[1:], " \t\r\n"), []byte("["))
				}
			}
			i, name = end, false
		}
	}
	return m
}

// quoted returns the index of the quote that ends the string that begins at i; -1 without one.
func quoted(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}
