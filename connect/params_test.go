package connect_test

import (
	"testing"

	"github.com/simccl/simccl/units"
)

// TestSettings follows each setting to what it changes on 2 x DGX H100
// (connect.cc:322-350, 487; init.cc:700-725; paths.cc:856-890).
func TestSettings(t *testing.T) {
	type figures struct {
		channels, p2p, perPeer int
		chunk, simple          units.Bytes
	}
	base := figures{16, 16, 2, 128 << 10, 4 << 20}
	with := func(change func(*figures)) figures { f := base; change(&f); return f }
	for _, tt := range []struct {
		env  string
		want figures
	}{
		{"", base},
		{"NCCL_MAX_NCHANNELS=4", with(func(f *figures) { f.channels, f.p2p, f.perPeer = 4, 4, 1 })},
		{"NCCL_MAX_NCHANNELS=-2", base},
		{"NCCL_MAX_NCHANNELS=0", with(func(f *figures) { f.channels, f.p2p, f.perPeer = 1, 1, 1 })},
		{"NCCL_MAX_NRINGS=4", with(func(f *figures) { f.channels, f.p2p, f.perPeer = 4, 4, 1 })},
		{"NCCL_MAX_CTAS=6", with(func(f *figures) { f.channels, f.p2p, f.perPeer = 6, 8, 1 })},
		{"NCCL_MIN_NCHANNELS=20", with(func(f *figures) { f.channels, f.p2p = 20, 32 })},
		{"NCCL_MIN_NCHANNELS=1000", with(func(f *figures) { f.channels, f.p2p = 64, 64 })},
		{"NCCL_MIN_CTAS=24", with(func(f *figures) { f.channels, f.p2p = 24, 32 })},
		{"NCCL_WORK_ARGS_BYTES=128", with(func(f *figures) { f.channels, f.p2p, f.perPeer = 6, 4, 1 })},
		{"NCCL_MIN_P2P_NCHANNELS=33", with(func(f *figures) { f.p2p = 64 })},
		{"NCCL_MAX_P2P_NCHANNELS=2", with(func(f *figures) { f.p2p, f.perPeer = 2, 1 })},
		{"NCCL_NCHANNELS_PER_NET_PEER=3", with(func(f *figures) { f.perPeer = 4 })},
		{"NCCL_BUFFSIZE=65536", with(func(f *figures) { f.simple, f.chunk = 64<<10, 8<<10 })},
		{"NCCL_BUFFSIZE=-2", base},
		{"NCCL_P2P_NET_CHUNKSIZE=262144", with(func(f *figures) { f.chunk = 256 << 10 })},
		{"NCCL_P2P_NVL_CHUNKSIZE=262144", base}, // of one node only
	} {
		var env []string
		if tt.env != "" {
			env = append(env, tt.env)
		}
		c := build(t, "dgx-h100", 2, env...)
		got := figures{c.NChannels, c.P2PChannels, c.P2PChannelsPerPeer, c.P2PChunkSize, c.BuffSizes[2]}
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.env, got, tt.want)
		}
	}
}
