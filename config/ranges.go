package config

import "fmt"

// span is the range in which NCCL works with a size. Outside of it NCCL takes
// the value all the same, and then divides by zero, or overruns an int.
type span struct {
	least, most int64
	off         bool // 0 leaves it to NCCL
	why         string
}

// spans lists the sizes and counts that reach a stage. A buffer has 8 steps, each of which
// must hold one grain: 512 bytes of Simple, 16 of LL data, 1920 of LL128 data
// (device.h:309, enqueue.cc:2068); between nodes a quarter of a send/recv chunk
// must be left, and inside one an eighth (enqueue.cc:834, 879).
var spans = map[string]span{
	"NCCL_BUFFSIZE": {least: 8 * 512, most: maxInt,
		why: "each of its 8 steps holds at least one grain of 512 bytes"},
	"NCCL_LL_BUFFSIZE": {least: 8 * 2 * 16, most: 1<<29 - 1,
		why: "each of its 8 steps holds at least one grain of 16 bytes, and a flag beside each word"},
	"NCCL_LL128_BUFFSIZE": {least: 8 * 2048, most: maxInt,
		why: "each of its 8 steps holds at least one grain of 1920 bytes in lines of 128"},
	"NCCL_P2P_NET_CHUNKSIZE": {least: 4, most: 1<<28 - 1, why: "small messages take a quarter of it"},
	"NCCL_P2P_PCI_CHUNKSIZE": {least: 8, most: 1<<28 - 1,
		why: "a channel's share is at least an eighth of it"},
	"NCCL_P2P_NVL_CHUNKSIZE": {least: 8, most: 1<<28 - 1,
		why: "a channel's share is at least an eighth of it"},
	"NCCL_CHUNK_SIZE": {least: 2, most: maxInt, off: true, why: "LL sends half of it"},
	"NCCL_NVLS_CHUNKSIZE": {least: 512, most: 1<<28 - 1,
		why: "it holds at least one grain of 512 bytes"},
	"NCCL_IB_QPS_PER_CONNECTION": {least: 1, most: 128,
		why: "a connection has a table of 128 queue pairs and needs one (net_ib.cc:975)"},
	"NCCL_NVLSTREE_MAX_CHUNKSIZE": {least: 512, most: maxInt,
		why: "it holds at least one grain of 512 bytes"},
}

// maxInt is the largest value of the int that NCCL keeps a size in.
const maxInt = 1<<31 - 1

// outOfRange says what is wrong with a size, nil where NCCL works with it.
func (c *Config) outOfRange(name string) error {
	s, ok := spans[name]
	n := c.Number(name)
	if !ok || !n.Set || n.Value >= s.least && n.Value <= s.most || s.off && n.Value == 0 {
		return nil
	}
	also, reads := "", fmt.Sprint(n.Value)
	if _, rest, _ := ParseNumber(c.values[name].Text); rest != "" {
		reads += fmt.Sprintf(" of it, drops %q", rest)
	}
	if s.off {
		also = "0 or "
	}
	return fmt.Errorf("out of range, NCCL reads %s and fails with it: %s; write %s%d to %d", reads, s.why,
		also, s.least, s.most)
}
