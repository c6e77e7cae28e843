package detect

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/simccl/simccl/dev/golist"
	"github.com/simccl/simccl/topo"
)

// TestLinksByComputeCapability: how many NVLinks NCCL asks for (xml.cc:789).
func TestLinksByComputeCapability(t *testing.T) {
	for sm, want := range map[int]int{50: 0, 59: 0, 60: 4, 69: 4, 70: 6, 79: 6, 80: 12, 89: 12, 90: 18,
		120: 18} {
		if got := topo.MaxNVLinks(sm); got != want {
			t.Errorf("sm_%d: %d, want %d", sm, got, want)
		}
	}
}

// TestFieldsAreNVMLs: the numbers that NVML is asked by are those of its header, as go-nvml has them.
func TestFieldsAreNVMLs(t *testing.T) {
	type listed struct{ Dir string }
	of, err := golist.Packages[listed](golist.Query{Dir: ".",
		Patterns: []string{"github.com/NVIDIA/go-nvml/pkg/nvml"}})
	if err != nil || len(of) != 1 {
		t.Fatal(of, err)
	}
	text, err := os.ReadFile(filepath.Join(of[0].Dir, "const.go"))
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]int{"FI_DEV_NVLINK_GET_STATE": fieldNVLinkState,
		"FI_DEV_C2C_LINK_COUNT":      fieldC2CCount,
		"FI_DEV_C2C_LINK_GET_STATUS": fieldC2CStatus, "FI_DEV_C2C_LINK_GET_MAX_BW": fieldC2CMaxBW} {
		m := regexp.MustCompile(`(?m)^\s*` + name + `\s*=\s*(\d+)$`).FindSubmatch(text)
		if m == nil {
			t.Errorf("go-nvml has no %s", name)
			continue
		}
		if want, _ := strconv.Atoi(string(m[1])); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}
