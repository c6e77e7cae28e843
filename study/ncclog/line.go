package ncclog

import (
	"fmt"
	"io"
	"slices"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/topo"
)

// Subsystem is a part of NCCL by which its log is filtered.
type Subsystem uint8

// Subsystems, NCCL's names (NCCL_DEBUG_SUBSYS).
const (
	Init Subsystem = iota
	Graph
	Tuning
	Env
	Net
)

// Line is one INFO line without its prefix.
type Line struct {
	Sub  Subsystem
	Text string
}

// Prefix returns the prefix of NCCL's log lines: host, process, thread, CUDA device (debug.cc, ncclDebugLog).
func Prefix(host string, pid, tid, dev int) string {
	return fmt.Sprintf("%s:%d:%d [%d] NCCL INFO ", host, pid, tid, dev)
}

// WriteRank writes the lines that a rank logs during the creation of the communicator, restricted to subs if
// there are any. Simulated hosts are node0, node1, …, and every rank is a process whose id is the rank.
func WriteRank(w io.Writer, c *comm.Comm, rank int32, subs ...Subsystem) error {
	return write(w, RankPrefix(c, rank), OfRank(c, rank), subs)
}

func write(w io.Writer, prefix string, lines []Line, subs []Subsystem) error {
	for _, l := range lines {
		if len(subs) > 0 && !slices.Contains(subs, l.Sub) {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s%s\n", prefix, l.Text); err != nil {
			return err
		}
	}
	return nil
}

// RankPrefix returns the log prefix of a simulated rank.
func RankPrefix(c *comm.Comm, rank int32) string {
	d := &c.Domains[c.NodeOf[rank]]
	dev := 0
	for _, id := range d.System.Of(topo.GPU) {
		if gpu := d.System.Nodes[id].GPU; d.First+int32(gpu.Rank) == rank {
			dev = gpu.Dev
		}
	}
	return Prefix(fmt.Sprintf("node%d", c.HostOf[rank]), int(rank), int(rank), dev)
}

// log collects log lines.
type log []Line

func (l *log) add(s Subsystem, format string, args ...any) {
	*l = append(*l, Line{s, fmt.Sprintf(format, args...)})
}

// cut truncates a text like NCCL's buffer of size bytes.
func cut(text string, size int) string {
	if len(text) >= size {
		return text[:size-1]
	}
	return text
}
