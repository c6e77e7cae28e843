package view

import (
	"fmt"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/decl"
)

// TooMany returns the error of more elements than NCCL can hold, positioned at the first one above the limit.
func TooMany(r *rules.Ruleset, e *decl.Element, what string, n, most int) *decl.Error {
	return &decl.Error{Pos: e.Origin, Path: e.Name,
		Problem: fmt.Sprintf("%d %s in one NVLink domain: NCCL fails with more than %d%s", n,
			what, most, r.Aside(rules.AtManyNodes)),
		Hint: "give the file of one host, and --nodes for how many there are"}
}
