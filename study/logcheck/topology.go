package logcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/study/ncclog"
)

// Machine is the machine of a log's first communicator with a system print.
type Machine struct {
	// Nodes are topology files of its nodes in order, with how many nodes in a row each is for.
	Nodes []Node
	SM    int
	// GPU is the model's name, "" if no line states it; then SM is the compute capability with which most
	// lines agree.
	GPU   string
	Env   []string // settings of the log that bear on decisions, NAME=VALUE
	Notes []string // assumptions about what the log does not state
}

// Node is a topology file and the number of equal nodes.
type Node struct {
	File  File
	Count int
}

// Topology derives topology files from a log; version replaces the log's release. Rules of the oldest known
// release are applied to the print of an older one. Errors are those of Check, and *NoSystemError.
func Topology(log *ncclog.Log, version string) (*Machine, error) {
	in := &Input{Log: log, Version: version}
	out := &Machine{}
	text, older := in.version(), ""
	if text != "" && !strings.HasPrefix(text, "torch==") {
		text, older = release.Recorded(text)
	}
	r, note, err := release.Select(text)
	if err != nil {
		return nil, err
	}
	for _, n := range []string{older, note} {
		if n != "" {
			out.Notes = append(out.Notes, n)
		}
	}
	for _, c := range log.Comms {
		f, _, err := in.explain(c, r)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		out.Env, _ = settings(log)
		for _, n := range f.of.spec.Nodes {
			out.Nodes = append(out.Nodes, Node{File{n.Topo, f.of.files[n.Topo]}, n.Count})
		}
		out.Notes = append(append(out.Notes, f.notes...), f.of.notes...)
		out.SM = f.of.sm
		if i := slices.IndexFunc(log.GPUs, func(name string) bool { return smOf(name) > 0 }); i >= 0 {
			out.GPU = log.GPUs[i]
		} else {
			out.Notes = append(out.Notes,
				fmt.Sprintf("no line names the GPUs: compute capability %d explains the log", f.of.sm))
		}
		return out, nil
	}
	return nil, &NoSystemError{"no rank printed its system (=== System)"}
}

// NoSystemError reports a log without a system print.
type NoSystemError struct{ Why string }

func (e *NoSystemError) Error() string {
	return e.Why + "; run NCCL with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH, or have it write " +
		"the topology (NCCL_TOPO_DUMP_FILE)"
}
