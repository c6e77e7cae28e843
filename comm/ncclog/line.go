package ncclog

import (
	"fmt"
	"strings"
)

// Subsystem is a part of NCCL by which its log is filtered.
type Subsystem uint8

// Subsystems, NCCL's names (NCCL_DEBUG_SUBSYS).
const (
	Init Subsystem = iota
	Graph
	Tuning
)

// String is the name in NCCL_DEBUG_SUBSYS.
func (s Subsystem) String() string { return [...]string{"INIT", "GRAPH", "TUNING"}[s] }

// Line is one INFO line without its prefix.
type Line struct {
	Sub  Subsystem
	Text string
}

// Prefix is what NCCL puts before a line: host, process, thread, CUDA device
// (debug.cc ncclDebugLog).
func Prefix(host string, pid, tid, dev int) string {
	return fmt.Sprintf("%s:%d:%d [%d] NCCL INFO ", host, pid, tid, dev)
}

// log collects lines.
type log []Line

func (l *log) add(s Subsystem, format string, args ...any) {
	*l = append(*l, Line{s, fmt.Sprintf(format, args...)})
}

// cut ends a text where NCCL's buffer of size bytes does.
func cut(text string, size int) string {
	if len(text) >= size {
		return text[:size-1]
	}
	return text
}

// blanks is the indentation of a tree.
func blanks(n int) string { return strings.Repeat(" ", n) }
