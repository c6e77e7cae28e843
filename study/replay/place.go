package replay

import (
	"strconv"
	"strings"

	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/transform"
)

// kinds maps words to kinds of communicators.
var kinds = map[string]workload.CommKind{"tp": workload.TP, "pp": workload.PP, "dp": workload.DP,
	"ep": workload.EP, "cp": workload.CP, "fsdp": workload.FSDP}

// Place moves ranks to other positions of the machine. text is a position for each rank, 3,2,1,0, or kinds of
// groups, tp,dp, which makes the ranks of a TP group neighbours. at is the position of each rank. It returns
// a *transform.Error.
func Place(p *workload.Program, text string) (q *workload.Program, at []int32, err error) {
	words := strings.Split(text, ",")
	var order []workload.CommKind
	for _, w := range words {
		if k, ok := kinds[strings.ToLower(w)]; ok {
			order = append(order, k)
			continue
		}
		n, err := strconv.ParseInt(w, 10, 32)
		if err != nil || len(order) > 0 {
			return nil, nil, &transform.Error{Problem: "place " + strconv.Quote(w) +
				" is no number and no kind",
				Hint: "write a place for each rank, 3,2,1,0, or kinds of groups, tp,cp,ep,dp,pp"}
		}
		at = append(at, int32(n))
	}
	if len(order) > 0 {
		if len(at) > 0 {
			return nil, nil, &transform.Error{Problem: "places and kinds are mixed",
				Hint: "write one or the other"}
		}
		if at, err = transform.Order(p, order); err != nil {
			return nil, nil, err
		}
	}
	q, err = transform.Place(p, at)
	return q, at, err
}
