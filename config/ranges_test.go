package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/config"
)

// TestSizesOutOfRange: a size with which NCCL divides by zero or overruns is
// refused by name, with the range; the ends of the range are taken.
func TestSizesOutOfRange(t *testing.T) {
	for _, c := range []struct {
		name        string
		least, most int64
	}{
		{"NCCL_BUFFSIZE", 4096, 1<<31 - 1},
		{"NCCL_LL_BUFFSIZE", 256, 1<<29 - 1},
		{"NCCL_LL128_BUFFSIZE", 16384, 1<<31 - 1},
		{"NCCL_P2P_NET_CHUNKSIZE", 4, 1<<28 - 1},
		{"NCCL_P2P_PCI_CHUNKSIZE", 8, 1<<28 - 1},
		{"NCCL_P2P_NVL_CHUNKSIZE", 8, 1<<28 - 1},
		{"NCCL_CHUNK_SIZE", 2, 1<<31 - 1},
		{"NCCL_NVLS_CHUNKSIZE", 512, 1<<28 - 1},
		{"NCCL_NVLSTREE_MAX_CHUNKSIZE", 512, 1<<31 - 1},
		{"NCCL_IB_QPS_PER_CONNECTION", 1, 128},
	} {
		for _, bad := range []string{"-5", fmt.Sprint(c.least - 1), fmt.Sprint(c.most + 1), "1000000000000"} {
			_, _, err := config.Load(config.Sources{Flags: []string{c.name + "=" + bad}})
			var wrong *config.Error
			if !errors.As(err, &wrong) || wrong.Var != c.name || !strings.Contains(err.Error(),
				fmt.Sprintf("%d to %d", c.least, c.most)) {
				t.Errorf("%s=%s: %v", c.name, bad, err)
			}
		}
		for _, good := range []string{fmt.Sprint(c.least), fmt.Sprint(c.most), ""} {
			if _, _, err := config.Load(config.Sources{Flags: []string{c.name + "=" + good}}); err != nil {
				t.Errorf("%s=%s: %v", c.name, good, err)
			}
		}
	}
	for _, off := range []string{"NCCL_CHUNK_SIZE=0", "NCCL_BUFFSIZE=-2", "NCCL_NVLSTREE_MAX_CHUNKSIZE=-2"} {
		if _, _, err := config.Load(config.Sources{Flags: []string{off}}); err != nil {
			t.Errorf("%s leaves it to NCCL: %v", off, err)
		}
	}
}

// TestForeignNamesAreRefused: NCCL reads names that begin with NCCL_ only, so a
// --env of another name would change nothing.
func TestForeignNamesAreRefused(t *testing.T) {
	for flag, want := range map[string]string{
		"ALGO=Ring": "did you mean NCCL_ALGO", "nccl_proto=LL": "did you mean NCCL_PROTO",
		"CL_LL_BUFFSIZE=1": "did you mean NCCL_LL_BUFFSIZE",
		"HOME=/":           "begin with NCCL_ only",
	} {
		_, _, err := config.Load(config.Sources{Flags: []string{flag}})
		var wrong *config.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("--env %s: %v, want %q", flag, err, want)
		}
	}
	// Other names are none of NCCL's business in the environment.
	s := config.Sources{Flags: []string{"NCCL_ALGO=Ring", "SIMCCL_COLLNET=1", "CUDA_LAUNCH_BLOCKING=1"},
		Environ: []string{"ALGO=Ring"}}
	if _, _, err := config.Load(s); err != nil {
		t.Error(err)
	}
}
