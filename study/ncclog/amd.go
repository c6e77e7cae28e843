package ncclog

import "fmt"

// AMDError is a log of RCCL, AMD's library: it has NCCL's prefix and many of its
// lines, and other rules.
type AMDError struct {
	File string
	Line int
	Text string // the text that identifies it
}

func (e *AMDError) Error() string {
	return fmt.Sprintf("%s:%d:1: the log is of RCCL, AMD's library (%q); its decisions are not NCCL's and "+
		"are not compared or simulated", e.File, e.Line, e.Text)
}
