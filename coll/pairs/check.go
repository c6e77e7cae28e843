package pairs

import (
	"errors"
	"fmt"
	"math"

	"github.com/simccl/simccl/coll"
)

// Fault is a member of a workload that means nothing.
type Fault struct{ Member, Value, Problem, Hint string }

// With is what a workload says beside what ranks exchange.
type With struct {
	Sizes   bool // there are some
	Group   int  // operations of an NCCL group
	Windows bool // buffers are symmetric windows
}

// Member names the member of a workload that makes parts unequal.
func (s *Source) Member() string {
	if len(s.Rows) > 0 {
		return "counts"
	}
	return "imbalance"
}

// Faults lists what of the operation's counts means nothing.
func (s *Source) Faults(w With) (out []Fault) {
	add := func(member, value, problem, hint string) {
		out = append(out, Fault{member, value, problem, hint})
	}
	rows, variable := len(s.Rows) > 0, coll.Variable(s.Op)
	value := ""
	if s.Imbalance != 0 && !rows {
		value = fmt.Sprint(s.Imbalance)
	}
	switch {
	case (rows || s.Imbalance != 0) && !variable:
		add(s.Member(), value, "only "+coll.AllToAllV+" has counts by pair of ranks", "write op "+
			coll.AllToAllV)
	case rows && s.Imbalance != 0:
		add("counts", "", "counts say how unequal they are", "leave the imbalance out")
	case s.Imbalance != 0 && !(s.Imbalance >= 1) || math.IsInf(s.Imbalance, 0):
		add("imbalance", value, "the busiest receiver gets at least the mean",
			"write a number from 1 to the number of ranks")
	case rows && w.Sizes:
		add("counts", "", "counts say the size", "leave sizes out")
	}
	if variable && w.Group > 1 {
		add("group", fmt.Sprint(w.Group), "several "+coll.AllToAllV+" of one group are not simulated",
			"leave the group out, or write alltoall")
	}
	if variable && w.Windows {
		add("buffers", "windows", "sends and receives have no use for symmetric windows",
			"leave them out, or write alltoall")
	}
	return out
}

// Placed is Matrix, and says at which row and column an error is, as "[1][2]".
func Placed(rows [][]int64) (p *coll.Pairs, where string, err error) {
	p, err = Matrix(rows)
	var bad *coll.PairError
	if errors.As(err, &bad) && bad.Src >= 0 {
		if where = fmt.Sprintf("[%d]", bad.Src); bad.Dst < len(rows[bad.Src]) {
			where += fmt.Sprintf("[%d]", bad.Dst)
		}
	}
	return p, where, err
}

// SpreadOf says how unequal the counts of an all_to_all_v are, whose parts are all count
// where p is nil; nil for other operations.
func SpreadOf(op string, p *coll.Pairs, count int64, ranks int) *coll.Spread {
	if p == nil && !coll.Variable(op) {
		return nil
	}
	s := coll.EqualSpread(count, ranks)
	if p != nil {
		s = p.Spread()
	}
	return &s
}
