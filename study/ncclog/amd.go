package ncclog

import (
	"fmt"
	"strings"
)

// AMDError is a log of RCCL, AMD's library, where one of NCCL is wanted: it has NCCL's prefix and many of its
// lines, and other rules.
type AMDError struct {
	File string
	Line int
	Text string // the text that identifies it
}

func (e *AMDError) Error() string {
	return fmt.Sprintf("%s:%d:1: the log is of RCCL, AMD's library (%q), whose system print does not say "+
		"what GPUs it has; simccl check --log FILE --topo TOPOLOGY compares it, with the file that "+
		"NCCL_TOPO_DUMP_FILE writes there", e.File, e.Line, e.Text)
}

// Lines of RCCL that differ from NCCL's in form (init.cc:937, 2027, 2031 and 2188 of RCCL 2.30.4).
var (
	rcclVersion = Pattern(`(?:RCCL version ?:?|^NCCL version) (\d+\.\d+\.\d+)`)
	rcclEnd     = Pattern(` comm 0x[0-9a-f]+ nRanks \d+(?: busId [0-9a-f]+)?$`)
	rcclCounts  = Pattern(`^comm:0x[0-9a-f]+, nRanks:\d+, nNodes:\d+, coll channels:(\d+) ` +
		`collnet channels:(\d+), nvls channels:(\d+), p2p channels:(\d+), p2p channels per peer:(\d+)`)
)

// ReadRCCL reads logs of RCCL as Read those of NCCL; lines that differ in form alone have NCCL's.
func ReadRCCL(files ...File) (*Log, error) { return read(true, files) }

// versionOf takes the version from a line of RCCL's, which has several lines of which the first has a prefix.
func (r *reader) versionOf(line string) {
	if m := rcclVersion().FindStringSubmatch(line); m != nil && r.log.Version == "" {
		r.log.Version = "rccl-" + m[1]
	}
}

// asNCCL writes a line of RCCL in NCCL's form: without the communicator at the end, rings by two digits,
// numbers of channels before their names.
func asNCCL(text string) string {
	if m := rcclCounts().FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s coll channels, %s collnet channels, %s nvls channels, %s p2p channels, "+
			"%s p2p channels per peer", m[1], m[2], m[3], m[4], m[5])
	}
	text = rcclEnd().ReplaceAllString(text, "")
	if n, ok := strings.CutPrefix(text, "Ring "); ok && strings.Index(n, " :") == 1 {
		return "Ring 0" + n
	}
	return text
}
