package gen

import (
	"math"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// TestRangesOfValues: each value is taken from its least to its most, and beyond the option is named.
func TestRangesOfValues(t *testing.T) {
	for _, x := range []struct {
		option      string
		least, most int64
		set         func(*Config, int64)
	}{
		{"layers", 1, 16384, func(c *Config, v int64) { c.Layers = v }},
		{"hidden", 1, 1 << 20, func(c *Config, v int64) { c.Hidden = v }},
		{"heads", 1, 65536, func(c *Config, v int64) { c.Heads = v }},
		{"kv-heads", 1, 65536, func(c *Config, v int64) { c.KVHeads = v }},
		{"ffn", 1, 1 << 24, func(c *Config, v int64) { c.FFN, c.ExpertFFN = v, 0 }},
		{"ffn", 1, 1 << 24, func(c *Config, v int64) { c.FFN, c.ExpertFFN = 0, v }},
		{"vocab", 1, 1 << 26, func(c *Config, v int64) { c.Vocab = v }},
		{"seq", 1, 1 << 26, func(c *Config, v int64) { c.Seq = v }},
		{"micro-batch", 1, 1 << 20, func(c *Config, v int64) { c.MicroBatch = v }},
		{"global-batch", 1, 1 << 24, func(c *Config, v int64) { c.GlobalBatch = v }},
		{"tp", 1, 65536, func(c *Config, v int64) { c.TP = int(v) }},
		{"pp", 1, 65536, func(c *Config, v int64) { c.PP = int(v) }},
		{"dp", 1, 65536, func(c *Config, v int64) { c.DP = int(v) }},
		{"ep", 1, 65536, func(c *Config, v int64) { c.EP = int(v) }},
		{"cp", 1, 65536, func(c *Config, v int64) { c.CP = int(v) }},
		{"virtual", 1, 1024, func(c *Config, v int64) { c.Virtual = int(v) }},
		{"bucket", 1, 1 << 40, func(c *Config, v int64) { c.Bucket = units.Bytes(v) }},
		{"iterations", 1, 1000, func(c *Config, v int64) { c.Iterations = int(v) }},
		{"host-launch", 0, 100_000, func(c *Config, v int64) {
			c.Launch = units.Time(v) * units.Microsecond
		}},
		{"fsdp", 0, 3, func(c *Config, v int64) { c.FSDP = int(v) }},
		{"prefetch", 0, 1000, func(c *Config, v int64) { c.Prefetch = int(v) }},
		{"experts", 0, 65536, func(c *Config, v int64) { c.Experts, c.TopK = int(v), 1 }},
		{"experts", 1, 8, func(c *Config, v int64) { c.Experts, c.TopK = 8, int(v) }},
	} {
		for _, at := range []struct {
			v  int64
			ok bool
		}{{x.least - 1, false}, {x.least, true}, {x.most, true}, {x.most + 1, false}} {
			c := small()
			x.set(&c, at.v)
			err := c.ranges()
			if (err == nil) != at.ok || err != nil && (err.Option != x.option || err.Hint == "") {
				t.Errorf("%s %d: %v", x.option, at.v, err)
			}
		}
	}
}

// TestValuesThatDoNotGoTogether name one option of them.
func TestValuesThatDoNotGoTogether(t *testing.T) {
	experts := func(c *Config) { c.Experts, c.TopK = 8, 2 }
	for _, x := range []struct {
		of, option string // none: it is taken
		set        func(*Config)
	}{
		{"nothing", "", func(*Config) {}},
		{"a shard of four ranks", "", func(c *Config) { c.DP, c.CP, c.FSDP, c.Shard = 2, 2, 3, 4 }},
		{"a shard that divides them", "", func(c *Config) { c.DP, c.CP, c.FSDP, c.Shard = 4, 1, 3, 2 }},
		{"a shard of three of four", "shard", func(c *Config) { c.DP, c.CP, c.FSDP, c.Shard = 4, 1, 3, 3 }},
		{"a shard of nothing", "shard", func(c *Config) { c.DP, c.CP, c.FSDP, c.Shard = 4, 1, 0, 2 }},
		{"a shard below 0", "shard", func(c *Config) { c.FSDP, c.Shard = 3, -1 }},
		{"a shard of experts", "shard", func(c *Config) {
			c.DP, c.CP, c.FSDP, c.Shard = 4, 1, 3, 2
			experts(c)
		}},
		{"room for 1000", "", func(c *Config) { c.Capacity = 1000 }},
		{"room for more", "capacity", func(c *Config) { c.Capacity = 1001 }},
		{"no room", "capacity", func(c *Config) { c.Capacity = 0 }},
		{"no number", "capacity", func(c *Config) { c.Capacity = math.NaN() }},
		{"a layer and its parts again", "recompute", func(c *Config) {
			c.Recompute, c.Modules = true, Operators
		}},
		{"a layer again", "", func(c *Config) { c.Recompute = true }},
		{"operators again", "", func(c *Config) { c.Modules = Operators }},
		{"operators and more", "recompute", func(c *Config) { c.Modules = Operators | 1 | 2 }},
		{"operators of experts", "recompute", func(c *Config) { c.Modules = Operators; experts(c) }},
		{"operators of latent keys", "recompute", func(c *Config) { c.Modules, c.KVRank = Operators, 1 }},
		{"operators of state spaces", "recompute", func(c *Config) { c.Modules, c.SSMHeads = Operators, 1 }},
		{"no type", "dtype", func(c *Config) { c.Type = 99 }},
		{"gradients of none", "dtype", func(c *Config) { c.GradType = 99 }},
		{"bytes", "dtype", func(c *Config) { c.Type = coll.Int8 }},
		{"no FLOPS", "efficiency", func(c *Config) { c.GPU.FLOPS = 0 }},
		{"no memory", "efficiency", func(c *Config) { c.GPU.Memory = 0 }},
		{"all of the peak", "", func(c *Config) { c.GPU.Efficiency, c.GPU.MemoryEfficiency = 1, 1 }},
		{"more than the peak", "efficiency", func(c *Config) { c.GPU.Efficiency = 1.01 }},
		{"nothing of the peak", "efficiency", func(c *Config) { c.GPU.Efficiency = 0 }},
		{"more than the memory's", "efficiency", func(c *Config) { c.GPU.MemoryEfficiency = 1.01 }},
		{"nothing of the memory's", "efficiency", func(c *Config) { c.GPU.MemoryEfficiency = 0 }},
	} {
		c := small()
		x.set(&c)
		option := ""
		if err := c.ranges(); err != nil {
			option = err.Option
		}
		if option != x.option {
			t.Errorf("%s: --%s is named, want %q", x.of, option, x.option)
		}
	}
}

// TestLargestDivisors are what hints write.
func TestLargestDivisors(t *testing.T) {
	for _, x := range [][3]int64{{8, 3, 2}, {8, 8, 8}, {8, 100, 8}, {7, 6, 1}, {12, 5, 4},
		{9, 2, 1}, {4, 2, 2}} {
		if got := largest(x[0], x[1]); got != x[2] {
			t.Errorf("of %d up to %d: %d, want %d", x[0], x[1], got, x[2])
		}
	}
}
