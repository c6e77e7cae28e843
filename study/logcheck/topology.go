package logcheck

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/study/ncclog"
)

// Machine is what a log's first communicator with a system print ran on.
type Machine struct {
	// Nodes are topology files of its nodes in order, with how many nodes in a row each is for.
	Nodes []Node
	SM    int
	// GPU is the model's name, "" where no line has it; without it SM is what explains
	// most lines.
	GPU   string
	Env   []string // settings of the log that bear on decisions, NAME=VALUE
	Notes []string // what the log does not say and was assumed
}

// Node is a topology file and the number of equal nodes.
type Node struct {
	File  File
	Count int
}

// Topology makes topology files of a log. Errors are those of Check,
// and *NoSystemError.
func Topology(log *ncclog.Log) (*Machine, error) {
	r, note, err := release.Select(log.Version)
	if err != nil {
		return nil, err
	}
	out := &Machine{}
	if note != "" {
		out.Notes = append(out.Notes, note)
	}
	for _, c := range log.Comms {
		nodes, err := nodesOf(log, c, r)
		if err != nil {
			return nil, err
		}
		if len(nodes) == 0 {
			continue
		}
		out.Env, _ = settings(log)
		cast := ncclog.Unknown
		for _, k := range c.Ranks {
			cast = max(cast, k.Multicast)
		}
		_, m, err := likeliest(Input{Log: log}, c, r, nodes, out.Env, cast)
		if err != nil {
			return nil, err
		}
		for _, n := range m.spec.Nodes {
			out.Nodes = append(out.Nodes, Node{File{n.Topo, m.files[n.Topo]}, n.Count})
		}
		for _, n := range nodes {
			out.Notes = append(out.Notes, n.notes...)
		}
		out.SM, out.Notes = m.sm, append(out.Notes, m.notes...)
		if i := slices.IndexFunc(log.GPUs, func(name string) bool { return smOf(name) > 0 }); i >= 0 {
			out.GPU = log.GPUs[i]
		} else {
			out.Notes = append(out.Notes, fmt.Sprintf("no line names the GPUs: compute capability %d explains the log", m.sm))
		}
		return out, nil
	}
	if len(log.Comms) == 0 {
		return nil, &NoSystemError{"no line says Init START"}
	}
	return nil, &NoSystemError{"no rank printed its system (=== System)"}
}

// NoSystemError says that a log has no machine in it.
type NoSystemError struct{ Why string }

func (e *NoSystemError) Error() string {
	return e.Why + "; run NCCL with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH, or have it write the topology (NCCL_TOPO_DUMP_FILE)"
}
