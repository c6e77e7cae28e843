package machine

import (
	"fmt"
	"strings"
	"testing"
)

// TestProcessorsAreTheirMakers: Intel's signatures (Software Developer's Manual, volume 4, table 2-1), AMD's
// family and model, hexadecimal, of which the family is NCCL's: 15 and the extended one shifted (xml.cc:527).
func TestProcessorsAreTheirMakers(t *testing.T) {
	for name, want := range map[string][2]int{"broadwell": {0x06, 0x4F}, "skylake": {0x06, 0x55},
		"cascade-lake": {0x06, 0x55}, "ice-lake": {0x06, 0x6A}, "sapphire-rapids": {0x06, 0x8F},
		"emerald-rapids": {0x06, 0xCF}, "granite-rapids": {0x06, 0xAD},
		"rome": {0x17, 0x31}, "milan": {0x19, 0x01}, "genoa": {0x19, 0x11}} {
		family := want[0]
		if family > 0xF {
			family = 0xF + (family-0xF)<<4
		}
		if k := cpuKinds[name]; k.family != family || k.model != want[1] {
			t.Errorf("%s: family %d, model %d, want %d, %d", name, k.family, k.model, family, want[1])
		}
	}
}

// TestGPUsAreNVIDIAs: compute capability by NVIDIA's list, GB/s of NVLink by the data sheets, both directions
// together (a link has 40 of the first generation, 50 of the second to fourth, 100 of the fifth; those of
// sm_86 have 28.125), and the C2C links' as NVML reports them, in one.
func TestGPUsAreNVIDIAs(t *testing.T) {
	for name, want := range map[string]struct {
		capability string
		nvlink     float64
		c2c        float64
	}{"p100-sxm2": {"6.0", 160, 0}, "v100-sxm2": {"7.0", 300, 0}, "v100-sxm3": {"7.0", 300, 0},
		"a100-sxm": {"8.0", 600, 0}, "a100-pcie": {"8.0", 600, 0}, "a10g": {"8.6", 0, 0},
		"a6000": {"8.6", 112.5, 0}, "l40s": {"8.9", 0, 0}, "rtx4090": {"8.9", 0, 0},
		"h100-sxm": {"9.0", 900, 0}, "h100-pcie": {"9.0", 600, 0},
		"h200-sxm": {"9.0", 900, 0}, "h800-sxm": {"9.0", 400, 0}, "h20-sxm": {"9.0", 900, 0},
		"b200-sxm": {"10.0", 1800, 0}, "b300-sxm": {"10.3", 1800, 0}, "gh200": {"9.0", 900, 447.12},
		"gb200": {"10.0", 1800, 223.56}, "gb300": {"10.3", 1800, 223.56}, "gb10": {"12.1", 0, 345},
		"rtx-pro-6000": {"12.0", 0, 0}, "t4": {"7.5", 0, 0}, "a10": {"8.6", 0, 0},
		"a30": {"8.0", 200, 0},
		"a40": {"8.6", 112.5, 0}, "rtx3090": {"8.6", 112.5, 0}, "l4": {"8.9", 0, 0}, "l20": {"8.9", 0, 0},
		"l40": {"8.9", 0, 0}, "rtx-6000-ada": {"8.9", 0, 0}, "rtx5090": {"12.0", 0, 0},
		"v100-pcie": {"7.0", 0, 0}, "a800-sxm": {"8.0", 400, 0}, "h100-nvl": {"9.0", 600, 0}} {
		k := gpuKinds[name]
		link := 50.0
		switch {
		case k.sm < 70:
			link = 40
		case k.sm >= 100:
			link = 100
		case k.sm == 86 && k.links > 0:
			link = 28.125
		}
		if got := fmt.Sprintf("%d.%d", k.sm/10, k.sm%10); got != want.capability {
			t.Errorf("%s: %s, want %s", name, got, want.capability)
		}
		if got := link * float64(k.links); got != want.nvlink {
			t.Errorf("%s: NVLink %g GB/s, want %g", name, got, want.nvlink)
		}
		if got := float64(k.c2cBW*k.c2cNo) / 1000; got != want.c2c {
			t.Errorf("%s: C2C %g GB/s, want %g", name, got, want.c2c)
		}
	}
	if n := len(gpuKinds); n != 34 {
		t.Errorf("%d GPUs, of which 34 are held here", n)
	}
}

// TestLimitsOfAHost: at most 64 GPUs or NICs in a group, 512 groups, and groups 8 deep.
func TestLimitsOfAHost(t *testing.T) {
	below := func(depth int) string {
		return strings.Repeat(`"below": [{`, depth) + `"gpus": 1` + strings.Repeat("}]", depth)
	}
	for group, ok := range map[string]bool{`"gpus": 1, "nics": 64`: true, `"gpus": 1, "nics": 65`: false,
		`"gpus": 64`: true, `"gpus": 65`: false, `"gpus": 1, "times": 512`: true,
		`"gpus": 1, "times": 513`: false, below(8): true, below(9): false} {
		old := `"switches": ["broadcom-gen4"], "gpus": 1, "nics": 1, "times": 2`
		text := strings.Replace(strings.Replace(small, old, group, 1), `"mesh": 4`, `"mesh": 0`, 1)
		if _, err := Parse([]byte(text), "x.json"); (err == nil) != ok {
			t.Errorf("%s: %v", group, err)
		}
	}
}
