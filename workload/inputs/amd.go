package inputs

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// amd are lines that RCCL, AMD's library, alone writes in NCCL's log: its prefix and versions
// (init.cc, showVersion of RCCL), GPUs and links by AMD's names, its settings and helpers.
// Which kind of link a host has does not matter: a log of PCIe alone has the versions, too.
var amd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`\bRCCL (?:INFO|WARN|[vV]ersion)\b.*|\b(?:HIP|ROCm|ROCr) version\b.*|\b[lL]ibrccl\b.*|NCCL version \d+\.\d+\.\d+\+hip\S*|` +
			`\bRCCL_[A-Z_]+ set (?:by environment )?to .*|\bHSA_[A-Z_]+ ?(?:=|set|is|must).*|\+ XGMI\[[\d.]+\] - .*|/XGMI\).*|\brsmi_\w+|\brsmi functionality|\bROCM-SMI\b.*|` +
			`\bgfx(?:9[0-9a-f]{2}|1[0-2][0-9a-f]{2})\b.*|\bAMD (?:Instinct|Radeon) .*`)
})

// amdWords are words of which every log line about AMD's libraries and GPUs contains one.
var amdWords = []string{"RCCL", "rccl", "hip", "HIP", "ROC", "HSA_", "XGMI", "rsmi", "gfx", "AMD"}

// AMDLine returns the part of a log line that only RCCL writes, "" if there is none.
func AMDLine(line string) string {
	for _, w := range amdWords {
		if strings.Contains(line, w) {
			return strings.TrimSpace(amd().FindString(line))
		}
	}
	return ""
}

// maxTried bounds the lines with such a word that are looked at, for each word.
const maxTried = 10000

// firstAMD returns the offset of the first line of RCCL's in a text; -1 without one.
func firstAMD(text []byte) int {
	best := -1
	for _, w := range amdWords {
		at := 0
		for range maxTried {
			i := bytes.Index(text[at:], []byte(w))
			if i < 0 || best >= 0 && at+i > best {
				break
			}
			from := 1 + bytes.LastIndexByte(text[:at+i], '\n')
			line, _, _ := bytes.Cut(text[from:], []byte("\n"))
			if m := amd().FindIndex(line); m != nil {
				if best < 0 || from+m[0] < best {
					best = from + m[0]
				}
				break
			}
			at = from + len(line)
			if at >= len(text) {
				break
			}
		}
	}
	return best
}
