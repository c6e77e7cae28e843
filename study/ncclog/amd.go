package ncclog

import (
	"fmt"
	"strings"
)

// AMDError is a log of RCCL, AMD's library: it has NCCL's prefix and many of its
// lines, and other rules.
type AMDError struct {
	File string
	Line int
	Text string // what names it
}

func (e *AMDError) Error() string {
	return fmt.Sprintf("%s:%d:1: the log is of RCCL, AMD's library (%q); its decisions are not NCCL's and are not compared or simulated", e.File, e.Line, e.Text)
}

// amd are lines that RCCL alone writes: its prefix and versions (init.cc:showVersion
// of RCCL), GPUs and links by AMD's names, its settings and helpers. Which kind of
// link a host has does not matter: a log of PCIe alone has the versions, too.
var amd = Pattern(`\bRCCL (?:INFO|WARN|[vV]ersion)\b.*|\b(?:HIP|ROCm) version\s*:.*|\blibrccl[\w.-]*\.so\S*|NCCL version \d+\.\d+\.\d+\+hip\S*|` +
	`\bRCCL_[A-Z_]+ set (?:by environment )?to .*|\bHSA_[A-Z_]+ ?(?:=|set|is|must).*|\+ XGMI\[[\d.]+\] - .*|\brsmi_\w+|\bROCM-SMI\b.*|` +
	`\bgfx(?:9[0-9a-f]{2}|1[0-2][0-9a-f]{2})\b.*|\bAMD (?:Instinct|Radeon) .*`)

// isAMD returns what of a line RCCL alone writes, "" for nothing.
func isAMD(line string) string {
	for _, word := range [...]string{"RCCL", "rccl", "hip", "HIP", "ROC", "HSA_", "XGMI", "rsmi", "gfx", "AMD"} {
		if strings.Contains(line, word) {
			return strings.TrimSpace(amd().FindString(line))
		}
	}
	return ""
}
