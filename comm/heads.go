package comm

import (
	"fmt"
	"strings"
)

// HeadWarning warns if the NVLS heads are not in the order of ranks: NCCL's own all_gather and reduce_scatter
// with NVLS then give wrong data (plan.Misplaced). "" if they are in order, or if NVLS does neither
// operation.
func (c *Comm) HeadWarning() string {
	if c.NNodes != 1 || len(c.NVLS) == 0 || len(c.NVLS[0].Heads) != c.NRanks {
		return ""
	}
	var heads []string
	moved := false
	for i, rank := range c.NVLS[0].Heads {
		heads = append(heads, fmt.Sprint(rank))
		moved = moved || int(rank) != i
	}
	if !moved {
		return ""
	}
	return fmt.Sprintf("the GPUs are not in the order of ranks (NVLS heads are ranks %s), and NCCL %s "+
		"takes heads "+
		"for ranks: all_gather and reduce_scatter with NVLS put blocks in wrong places, without an error, "+
		"unless "+
		"buffers are registered (NVIDIA/nccl 1906); NCCL_ALGO=\"allgather:^NVLS;reducescatter:^NVLS\", or "+
		"CUDA_VISIBLE_DEVICES in the order of the machine, avoids it",
		strings.Join(heads, ","), c.Params.Rules.Version())
}
