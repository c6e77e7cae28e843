package transform

import "github.com/simccl/simccl/workload"

// Prune drops calls that no step issues and communicators without calls, of p itself.
func Prune(p *workload.Program) *workload.Program { return prune(p) }
