package replay

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/workload/load"
)

// board is a built-in machine by words of the name that a driver gives its GPUs.
type board struct {
	words   string // all of them, in lower case
	machine string
	small   string // a smaller machine with these GPUs and no NICs; "" none
	gpus    int    // of a host
}

// boards lists the boards in the order in which they are compared with a GPU's name: the first one all of
// whose words occur in it is taken.
var boards = []board{
	{"gb300", "gb300-nvl72", "", 4}, {"gb200", "gb200-nvl72", "", 4}, {"gh200", "gh200", "", 1},
	{"b300", "hgx-b300-8", "", 8}, {"b200", "dgx-b200", "", 8},
	{"h200", "dgx-h200", "h200x4", 8}, {"h20 ", "hgx-h20-8", "", 8}, {"h800", "hgx-h800-8", "", 8},
	{"h100", "dgx-h100", "", 8},
	{"a100 sxm", "dgx-a100", "", 8}, {"a100 pcie", "pcie-a100-4", "", 4}, {"a100", "dgx-a100", "", 8},
	{"v100", "dgx-1v", "", 8}, {"l40s", "pcie-l40s-8", "", 8},
	{"4090", "pcie-rtx4090-8", "", 8}, {"a10g", "aws-g5.48xlarge", "", 8}, {"gb10", "dgx-spark", "", 1},
}

// find returns the board with a GPU's name.
func find(gpu string) (board, bool) {
	name := strings.ToLower(gpu) + " "
	for _, b := range boards {
		all := true
		for _, w := range strings.Fields(b.words) {
			if strings.HasSuffix(b.words, " ") {
				w += " "
			}
			all = all && strings.Contains(name, w)
		}
		if all {
			return b, true
		}
	}
	return board{}, false
}

// MachineName returns the GPU name by which Machine finds its machine; "" if there is none.
func MachineName(gpu string) string {
	if _, ok := find(gpu); !ok {
		return ""
	}
	return gpu
}

// smallGPUs is the number of GPUs of the small machines.
const smallGPUs = 4

// Builtin returns the built-in machine for `ranks` GPUs with a driver's name; ok is false if there is none.
func Builtin(gpu string, ranks int) (name string, ok bool) {
	b, ok := find(gpu)
	if ok && b.small != "" && ranks <= smallGPUs {
		return b.small, true
	}
	return b.machine, ok
}

// Machine completes a Spec without a topology from a recording: the built-in machine with its GPUs, in the
// number of the job's ranks, with the settings and the release of the run. note states this. It returns a
// *scenario.FieldError for unknown GPUs.
func Machine(spec *scenario.Spec, meta *load.MetaInfo, ranks int) (note string, err error) {
	b, ok := find(meta.GPU)
	if !ok {
		problem := "the recording does not say which GPUs it is of"
		if meta.GPU != "" {
			problem = fmt.Sprintf("no built-in machine has the GPUs of the recording, %q", meta.GPU)
		}
		return "", &scenario.FieldError{Path: "Topo", Problem: problem,
			Hint: "name the machine, --topo dgx-h100"}
	}
	name, _ := Builtin(meta.GPU, ranks)
	gpus, hosts := min(ranks, b.gpus), 1
	if ranks > b.gpus {
		if hosts = ranks / b.gpus; ranks%b.gpus != 0 {
			return "", &scenario.FieldError{Path: "machine.nodes",
				Problem: fmt.Sprintf("%d ranks do not fill hosts of %d GPUs", ranks, b.gpus),
				Hint:    "name the machine with --topo, --nodes and -g"}
		}
	}
	spec.Machine.Nodes = []scenario.Nodes{{Topo: name, Count: hosts}}
	if m := builtin.Lookup(name); m != nil && gpus < gpusOf(m, b.gpus) {
		spec.Machine.GPUs = gpus
	}
	note = fmt.Sprintf("the machine is %d GPUs of the built-in %s, for the recording's %s", ranks, name,
		meta.GPU)
	if spec.Machine.Multicast == "" && meta.Env["NCCL_NVLS_ENABLE"] == "0" {
		spec.Machine.Multicast = "off"
		note += ", multicast off as in its settings"
	}
	return note, nil
}

// gpusOf returns the number of GPUs of a host of a machine.
func gpusOf(m *builtin.Machine, usual int) int {
	if m.Name == "h200x4" {
		return smallGPUs
	}
	return usual
}
