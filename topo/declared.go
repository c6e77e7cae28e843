package topo

import (
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/internal/view"
)

// What a source declares and how it is wrong, under the names that callers of
// Build need; package decl has all of it.
type (
	Spec    = decl.Spec    // blueprint of one host or NVLink domain
	Element = decl.Element // one declared thing
	Origin  = decl.Origin  // where it was declared
	Error   = decl.Error   // one thing wrong with it, and what to write instead
	Errors  = decl.Errors  // all that is wrong with it
)

// MergeError reports that NCCL_NET_FORCE_MERGE or NCCL_NET_MERGE_LEVEL cannot be followed; NCCL's init
// fails on it.
type MergeError = view.MergeError
