package detect

import "strings"

// NVML field ids (nvml.h).
const (
	fieldNVLinkState = 165
	fieldC2CCount    = 170
	fieldC2CStatus   = 171
	fieldC2CMaxBW    = 172
	capP2P           = 0
)

// busID converts NVML's "00000000:1B:00.0" into sysfs's "0000:1b:00.0", which has
// four digits of the domain or more. NCCL gets the far ends of NVLinks so too: it
// queries by the call that knows the short form only (nvmlwrap.h:77). An NVSwitch
// that a virtual machine does not see is "fffffff:ff:ff.0" in both.
func busID(s string) string {
	domain, rest, ok := strings.Cut(strings.ToLower(s), ":")
	if !ok {
		return domain
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return domain + ":" + rest
}
