package scenario

import "github.com/simccl/simccl/scenario/internal/named"

// Named is one operation by names: OP and SIZE as nccl-tests and Workload.Sizes have them,
// element type and reduction as nccl-tests calls them.
type Named = named.Operation
