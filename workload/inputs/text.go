package inputs

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/topo/site"
	"github.com/simccl/simccl/topo/smi"
	"github.com/simccl/simccl/workload/goal"
	"github.com/simccl/simccl/workload/simai"
)

// text recognises text that is neither XML nor JSON: first formats with a distinctive beginning, then logs
// and tables anywhere in a report.
func (v *Verdict) text(from int) {
	head := v.Text[from:min(len(v.Text), from+headSize)]
	if k := begins(head); k != Unknown {
		v.add(k, from)
		return
	}
	v.reports()
	if len(v.Found) == 0 {
		if k := rows(head); k != Unknown {
			v.add(k, from)
		}
	}
}

// begins recognises formats by their first lines.
func begins(head []byte) Kind {
	first, _, _ := bytes.Cut(head, []byte("\n"))
	starts := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return bytes.HasPrefix(head, []byte(w)) })
	}
	holds := func(words ...string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(head, []byte(w)) })
	}
	switch {
	case starts("workload "):
		return Native
	case goal.RecogniseText(head):
		return GOAL
	case simai.RecogniseAICB(head):
		return AICB
	case simai.Recognise(head):
		return SimAI
	case holds("topology:", "npus_count:"):
		return AstraNetwork
	case holds("busbw:", "allreduce"), starts("test\n") && holds("allreduce,:"):
		return SimAITable
	case starts("train_iter:"):
		return AIOB
	case bytes.HasPrefix(first, []byte("id\tName")) && holds("Hidden_size"):
		return AICBModels
	case lineOf(head, "base:") >= 0 && (lineOf(head, "grid:") >= 0 || lineOf(head, "zip:") >= 0 ||
		lineOf(head, "list:") >= 0 || lineOf(head, "seeds:") >= 0):
		return Sweep
	case lineOf(head, "TOPOLOGY_FILE ") >= 0 && lineOf(head, "FLOW_FILE ") >= 0:
		return NS3Config
	case starts("Nodes ") && lineOf(head, "Connections ") >= 0:
		return HTSimMatrix
	case starts("Nodes ") && lineOf(head, "Tiers ") >= 0:
		return HTSimNetwork
	case starts("GROUP ") && lineOf(head, "TASK ") >= 0:
		return Groups
	case lineOf(head, "## solo") >= 0, lineOf(head, "## gemm") >= 0, lineOf(head, "## two") >= 0,
		lineOf(head, "## group") >= 0, lineOf(head, "## sr") >= 0:
		return Overlap
	case strings.TrimSpace(string(first)) == "op,us":
		return OperationTimes
	case lineOf(head, "- topology:") >= 0 && (holds("tree:") || holds("block:") || holds("flat:")):
		return SlurmYAML
	case site.CableColumns(firstRow(head)):
		return CableTable
	}
	return Unknown
}

// firstRow returns the first line that is not empty or a comment.
func firstRow(head []byte) string {
	for line := range strings.Lines(string(head)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return line
		}
	}
	return ""
}

// lineOf returns the offset of the first line that begins with a word; -1 without one.
func lineOf(text []byte, word string) int {
	if bytes.HasPrefix(text, []byte(word)) {
		return 0
	}
	if i := bytes.Index(text, []byte("\n"+word)); i >= 0 {
		return i + 1
	}
	return -1
}

// Marks of logs and tables inside reports.
var (
	logMarks = []string{"NCCL INFO ", "RCCL INFO ", "RCCL WARN ", "NCCL WARN ", "NCCL TRACE ",
		"NCCL version 2."}
	// Marks of the start of a communicator: a log, not just lines of one around a table.
	initMarks = []string{"Init START", "Init COMPLETE", "=== System"}
	rocmMarks = []string{"ROCm System Management Interface", "Link Type between two GPUs",
		"Hops between two GPUs", "Weight between two GPUs", "AMD-SMI"}
	smiMarks = []string{"| NVIDIA-SMI ", "==NVSMI LOG=="}
	ibMarks  = []string{"vendid=0x", "switchguid=0x", "caguid=0x"}
)

// firstOf returns the offset of the first of some words; -1 without one.
func firstOf(text []byte, words []string) int {
	at := -1
	for _, w := range words {
		end := len(text)
		if at >= 0 {
			end = min(end, at+len(w))
		}
		if i := bytes.Index(text[:end], []byte(w)); i >= 0 {
			at = i
		}
	}
	return at
}

// firstLog returns the offset of the first NCCL log mark at the beginning of a line, after prefixes of NCCL
// and launchers; -1 if there is none. A mark within prose does not count.
func firstLog(text []byte) int {
	best := -1
	for _, mark := range logMarks {
		for at := 0; ; {
			i := bytes.Index(text[at:], []byte(mark))
			if i < 0 {
				break
			}
			i += at
			before := bytes.TrimRight(text[1+bytes.LastIndexByte(text[:i], '\n'):i], " \t")
			if len(before) == 0 || bytes.IndexByte([]byte("]:>|)"), before[len(before)-1]) >= 0 {
				if best < 0 || i < best {
					best = i
				}
				break
			}
			at = i + len(mark)
		}
	}
	return best
}

// reports recognises what may have other lines before and behind.
func (v *Verdict) reports() {
	text := v.Text
	log, table, amd := firstLog(text), nccltests.HeaderAt(text), -1
	if (log >= 0 || table >= 0) && !bytes.Contains(text, []byte("+cuda")) { // a log of NCCL may name RCCL
		amd = firstAMD(text)
	}
	if log < 0 || table < 0 || firstOf(text, initMarks) >= 0 {
		v.log(text, log, amd)
	}
	switch {
	case table >= 0 && amd >= 0:
		v.add(RCCLTable, table)
	case table >= 0:
		v.add(TestTable, table)
	}
	v.log(text, log, amd)
	v.matrices(text)
	if i := pasted(text); i >= 0 {
		v.add(topologyKind(text[i:]), i)
	}
	if len(v.Found) > 0 {
		return
	}
	switch at := firstOf(text, ibMarks); {
	case at >= 0:
		v.add(IBNetDiscover, at)
	case lineOf(text, "SwitchName=") >= 0:
		v.add(SlurmTopology, lineOf(text, "SwitchName="))
	case lineOf(text, "BlockName=") >= 0:
		v.add(SlurmTopology, lineOf(text, "BlockName="))
	default:
		v.add(SmiTable, firstOf(text, smiMarks))
	}
}

const systemEnd = "</system>"

// pasted returns the offset of a topology with other lines before it: at the beginning of a line;
// -1 without one.
func pasted(text []byte) int {
	i := bytes.Index(text, []byte("<system version="))
	if i < 0 || !bytes.Contains(text[i:], []byte(systemEnd)) {
		return -1
	}
	if line := text[1+bytes.LastIndexByte(text[:i], '\n') : i]; len(bytes.Trim(line, " \t")) > 0 {
		return -1 // quoted, which is for package envelope, or prose
	}
	return i
}

// log adds the kinds of a log and of what it contains.
func (v *Verdict) log(text []byte, log, amd int) {
	system := bytes.Index(text, []byte("=== System : maxBw"))
	switch {
	case log >= 0 && amd >= 0:
		v.add(RCCLLog, amd)
		return
	case log >= 0:
		v.add(NCCLLog, log)
	}
	v.add(SystemPrint, system)
	if log >= 0 && bytes.Contains(text, []byte(": opCount ")) {
		v.add(NCCLCalls, log)
	}
}

// matrices adds the matrices of nvidia-smi and rocm-smi.
func (v *Verdict) matrices(text []byte) {
	if at := firstOf(text, rocmMarks); at >= 0 {
		v.add(RocmSMI, at)
		return
	}
	gpu0 := bytes.Index(text, []byte("GPU0"))
	if gpu0 < 0 {
		return
	}
	switch smi.TableOf(string(text)) {
	case smi.P2P:
		v.add(P2PMatrix, gpu0)
	case smi.Paths:
		v.add(Matrix, gpu0)
	}
}

// rows recognises lists of fields without a heading by their first lines.
func rows(head []byte) Kind {
	var lines [][]string
	for line := range strings.Lines(string(head)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			if lines = append(lines, strings.Fields(line)); len(lines) == 3 {
				break
			}
		}
	}
	if len(lines) == 0 {
		return Unknown
	}
	numbers := func(w []string) bool {
		return !slices.ContainsFunc(w, func(s string) bool {
			_, err := strconv.ParseFloat(s, 64)
			return err != nil
		})
	}
	first := lines[0]
	if site.IsHostList(lines) {
		return HostList
	}
	cells := strings.Split(strings.Join(first, ""), ",")
	switch {
	case len(cells) >= 8 && slices.Contains([]string{"allreduce", "broadcast", "reduce", "allgather",
		"reducescatter"}, cells[0]):
		return Tuner
	case strings.HasPrefix(first[0], "NCCL_") && strings.Contains(first[0], "="):
		return Settings
	case len(first) == 3 && numbers(first) && len(lines) > 2 && len(lines[2]) >= 4 &&
		strings.HasSuffix(lines[2][2], "bps"):
		return NS3Network
	case len(first) == 1 && numbers(first) && len(lines) > 1 && len(lines[1]) >= 6 && numbers(lines[1]):
		return NS3Flows
	}
	return Unknown
}
