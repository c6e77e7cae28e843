package ncclog

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/tuning"
)

// perBlock is the number of algorithms in one block of the table.
const perBlock = 3

// table logs the cost model (tuning.cc:504).
func (l *log) table(m *tuning.Model) {
	algos, protos := coll.Algorithms(), coll.Protocols()
	if !m.Params.Rules.Tuning.PAT { // the last of them (nccl_common.h of v2.23.4)
		algos = algos[:coll.PAT]
	}
	for from := 0; from < len(algos); from += perBlock {
		block := algos[from:min(from+perBlock, len(algos))]
		row := func(head string, cell func(a coll.Algorithm) string) {
			var b strings.Builder
			b.WriteString(head)
			for _, a := range block {
				b.WriteString(cell(a))
			}
			l.add(Tuning, "%s", cut(b.String(), lineSize))
		}
		cells := func(one func(a coll.Algorithm, p coll.Protocol) string) func(coll.Algorithm) string {
			return func(a coll.Algorithm) string {
				text := ""
				for _, p := range protos {
					text += one(a, p)
				}
				return text
			}
		}
		row("  Algorithm   |", func(a coll.Algorithm) string {
			return fmt.Sprintf(" %14s   %14s   %14s |", "", a, "")
		})
		names := cells(func(_ coll.Algorithm, p coll.Protocol) string { return fmt.Sprintf(" %14s |", p) })
		l.add(Tuning, "  Protocol    |%s", strings.Repeat(names(0), perBlock))
		row(" Max NThreads |", cells(func(a coll.Algorithm, p coll.Protocol) string {
			return fmt.Sprintf(" %14d |", m.MaxThreads[a][p])
		}))
		for _, f := range coll.Funcs()[:coll.NumCollFuncs] {
			row(fmt.Sprintf("%13s |", f), cells(func(a coll.Algorithm, p coll.Protocol) string {
				return fmt.Sprintf("%8.1f/%6.1f |", m.Latency[f][a][p], m.Bandwidth[f][a][p])
			}))
		}
	}
}

// thresholds prints the bytes per thread below which threads are dropped
// (tuning.cc:561).
func (l *log) thresholds(m *tuning.Model) {
	t := &m.ThreadThreshold
	tree, ring := t[coll.Tree], t[coll.Ring]
	l.add(Init, "threadThresholds %d/%d/%d | %d/%d/%d | %d | %d", tree[coll.LL], tree[coll.LL128],
		tree[coll.Simple],
		ring[coll.LL], ring[coll.LL128], ring[coll.Simple], t[coll.CollNetDirect][coll.Simple],
		t[coll.CollNetChain][coll.Simple])
}

// OfOp returns rank 0's line about a launched operation (enqueue.cc:741), before 2.24.3 about one for which
// the cost model was evaluated; c is its choice.
func OfOp(rs *rules.Ruleset, r plan.Request, c *tuning.Choice, s plan.Split) Line {
	if rs.Log.OpTime { // 2.23.4 enqueue.cc:1855, 2.22.3 enqueue.cc:1613
		text := fmt.Sprintf("%d Bytes -> Algo %d proto %d time %f", c.NBytes, r.Algo, r.Proto, c.TimeUs)
		if !rs.Log.OpNoFunc {
			text = fmt.Sprintf("%v: %s", r.Func, text)
		}
		return Line{Tuning, text}
	}
	return Line{Tuning, fmt.Sprintf("%v: %d Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}",
		r.Func, r.Count*int64(r.Type.Size()), r.Algo.LogName(), r.Proto.LogName(), s.ChannelLo, s.ChannelHi)}
}
