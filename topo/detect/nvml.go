package detect

import "strings"

// maxLinks is how many NVLinks NCCL asks about, by compute capability
// (xml.cc:789).
func maxLinks(sm int) int {
	switch {
	case sm < 60:
		return 0
	case sm < 70:
		return 4
	case sm < 80:
		return 6
	case sm < 90:
		return 12
	}
	return 18
}

// NVML field ids (nvml.h).
const (
	fieldNVLinkState = 165
	fieldC2CCount    = 170
	fieldC2CStatus   = 171
	fieldC2CMaxBW    = 172
	capP2P           = 0
)

// busID turns NVML's "00000000:1B:00.0" into sysfs's "0000:1b:00.0".
func busID(s string) string {
	s = strings.ToLower(s)
	if len(s) == len("00000000:1b:00.0") {
		return s[4:]
	}
	return s
}
