package cli

import (
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/scenario"
)

// ExpertRows are the flags that say what a dispatch or a combine moves.
func ExpertRows(s *scenario.Serving) []flags.Row {
	return []flags.Row{
		flags.Of(&s.Experts, "experts", "", 0, "`N` experts of all ranks", "workload.serving.experts"),
		flags.Of(&s.TopK, "top-k", "", 0, "experts `K` of a token", "workload.serving.topK"),
		flags.Of(&s.Groups, "expert-groups", "", 0,
			"`N` groups of experts, of which a token's are of some (default: of any)",
			"workload.serving.groups"),
		flags.Of(&s.TopKGroups, "top-k-groups", "", 0, "`N` groups that a token's experts are of",
			"workload.serving.topKGroups"),
		flags.Of(&s.Hidden, "hidden", "", 0, "`N` values of a token", "workload.serving.hidden"),
		flags.Of(&s.Tokens, "tokens", "", 0, "`N` tokens of each rank, of kv_transfer of the request",
			"workload.serving.tokens"),
	}
}
