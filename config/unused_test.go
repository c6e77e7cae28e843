package config

import (
	"strings"
	"testing"
)

// TestSettingsWithoutEffectSayWhy: of each fact of the machine that takes a setting's effect away, on both
// sides of the limit; where nothing is known of the machine nothing is said of it.
func TestSettingsWithoutEffectSayWhy(t *testing.T) {
	h100 := Facts{Known: true, Ranks: 16, Nodes: 2, Hosts: 2, Nets: 8, AllNVLink: true, NVSwitch: true,
		MinSM: 90}
	with := func(set func(*Facts)) Facts {
		f := h100
		set(&f)
		return f
	}
	one := with(func(f *Facts) { f.Nodes, f.Hosts = 1, 1 })
	for i, c := range []struct {
		flags string
		name  string
		f     Facts
		want  string // part of the reason
	}{
		{"NCCL_P2P_LEVEL=PIX", "NCCL_P2P_LEVEL", h100, ""},
		{"NCCL_P2P_LEVEL=PIX NCCL_P2P_DISABLE=1", "NCCL_P2P_LEVEL", h100,
			"NCCL_P2P_DISABLE=1 takes precedence"},
		{"NCCL_P2P_LEVEL=PIX NCCL_P2P_DISABLE=0", "NCCL_P2P_LEVEL", h100, ""},
		{"NCCL_COLLNET_ENABLE=1", "NCCL_COLLNET_ENABLE", h100, "no net plugin"},
		{"NCCL_COLLNET_ENABLE=1 SIMCCL_COLLNET=1", "NCCL_COLLNET_ENABLE", h100, ""},
		{"SIMCCL_COLLNET=1", "SIMCCL_COLLNET", h100, "does not enable it"},
		{"NCCL_COLLNET_ENABLE=1 SIMCCL_COLLNET=1", "SIMCCL_COLLNET", h100, ""},
		{"SIMCCL_COLLNET=1 NCCL_COLLNET_NODE_THRESHOLD=2", "NCCL_COLLNET_NODE_THRESHOLD", h100,
			"does not enable"},
		{"NCCL_CROSS_NIC=1", "NCCL_CROSS_NIC", h100, ""},
		{"NCCL_CROSS_NIC=1", "NCCL_CROSS_NIC", with(func(f *Facts) { f.Nets = 1 }), "a node has one NIC"},
		{"NCCL_CROSS_NIC=1", "NCCL_CROSS_NIC", with(func(f *Facts) { f.Nets = 2 }), ""},
		{"NCCL_CROSS_NIC=1", "NCCL_CROSS_NIC", with(func(f *Facts) { f.Ranks, f.Nodes = 1, 1 }), "one rank"},
		{"NCCL_CROSS_NIC=1", "NCCL_CROSS_NIC", Facts{Nets: 1, Ranks: 1, Nodes: 1}, ""},
		{"NCCL_P2P_NVL_CHUNKSIZE=65536", "NCCL_P2P_NVL_CHUNKSIZE", h100, "NCCL_P2P_NET_CHUNKSIZE holds"},
		{"NCCL_P2P_PCI_CHUNKSIZE=65536", "NCCL_P2P_PCI_CHUNKSIZE", h100, "NCCL_P2P_NET_CHUNKSIZE holds"},
		{"NCCL_P2P_NVL_CHUNKSIZE=65536", "NCCL_P2P_NVL_CHUNKSIZE", one, ""},
		{"NCCL_P2P_PCI_CHUNKSIZE=65536", "NCCL_P2P_PCI_CHUNKSIZE", one, "all GPUs share NVLink"},
		{"NCCL_P2P_NVL_CHUNKSIZE=65536", "NCCL_P2P_NVL_CHUNKSIZE",
			with(func(f *Facts) { f.Nodes, f.AllNVLink = 1, false }), "not all GPUs share NVLink"},
		{"NCCL_P2P_PCI_CHUNKSIZE=65536", "NCCL_P2P_PCI_CHUNKSIZE",
			with(func(f *Facts) { f.Nodes, f.AllNVLink = 1, false }), ""},
		{"NCCL_P2P_NET_CHUNKSIZE=65536", "NCCL_P2P_NET_CHUNKSIZE", one, "one node and no network"},
		{"NCCL_NVLS_ENABLE=1", "NCCL_NVLS_ENABLE", h100, ""},
		{"NCCL_NVLS_ENABLE=1", "NCCL_NVLS_ENABLE", with(func(f *Facts) { f.NVSwitch = false }),
			"no NVSwitch"},
		{"NCCL_NVLS_ENABLE=1", "NCCL_NVLS_ENABLE", with(func(f *Facts) { f.MinSM = 89 }), "a GPU is sm_89"},
		{"NCCL_LL128_C2C=1", "NCCL_LL128_C2C", h100, ""},
		{"NCCL_LL128_C2C=1", "NCCL_LL128_C2C", with(func(f *Facts) { f.MinSM = 89 }), "it is for sm_90"},
		{"NCCL_PAT_ENABLE=1", "NCCL_PAT_ENABLE", with(func(f *Facts) { f.MinSM = 60 }), ""},
		{"NCCL_PAT_ENABLE=1", "NCCL_PAT_ENABLE", with(func(f *Facts) { f.MinSM = 59 }), "PAT needs sm_60"},
		{"NCCL_MNNVL_ENABLE=1", "NCCL_MNNVL_ENABLE", h100, ""},
		{"NCCL_MNNVL_ENABLE=1", "NCCL_MNNVL_ENABLE", with(func(f *Facts) { f.Hosts = 1 }),
			"more than one host"},
		{"NCCL_CUMEM_ENABLE=1", "NCCL_CUMEM_ENABLE", with(func(f *Facts) { f.Hosts = 1 }),
			"more than one host"},
	} {
		cfg, _, err := Load(Sources{Flags: strings.Fields(c.flags), NoEnv: true})
		if err != nil {
			t.Fatal(err)
		}
		got := cfg.unused(c.name, c.f)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%d: %s: %q, want %q", i, c.flags, got, c.want)
		}
	}
}
