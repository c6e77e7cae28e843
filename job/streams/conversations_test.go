package streams

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// TestConversations: programs and costs in, spans out.
//
//	gpus [sms=N] [memory=GB/s] [busy=F] [traffic=F] [wait=F] [tail=US] [unknown=F]   of all ranks
//	costs      of calls by number, a line each: N time=US sms=N [ends=US,...] [slack=US,...]
//	           [need=SHARE[/BYTES]@R] [behind=RATE@COMM] [buffered=US] [slowed=KERNELS/TAKES/WAITS]
//	           [empty]; else 10 us and 24 SMs
//	job        the program below, without its first line: of each rank when its steps begin and
//	           end, us; what is issued earlier says when
//
// Costs and GPUs hold for the jobs that follow.
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		costs, gpu := map[int]Cost{}, (*GPU)(nil)
		return func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "gpus":
				gpu = &GPU{SMs: int32(value(d, "sms")), Memory: value(d, "memory"), Busy: value(d, "busy"),
					Traffic: value(d, "traffic"), Wait: value(d, "wait"),
					Tail: units.FromMicros(value(d, "tail"))}
				return "ok"
			case "costs":
				costs = map[int]Cost{}
				for line := range strings.Lines(d.Input) {
					n, c := costOf(strings.Fields(line))
					costs[n] = c
				}
				return "ok"
			case "job":
				return spans(d, costs, gpu)
			}
			d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			return ""
		}
	})
}

func value(d *datadriven.TestData, key string) float64 { return number(ruletest.Value(d, key, "0")) }

func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

func costOf(words []string) (n int, c Cost) {
	c = Cost{Time: 10 * us, SMs: 24}
	times := func(text string) (out []units.Time) {
		for _, v := range strings.Split(text, ",") {
			out = append(out, units.FromMicros(number(v)))
		}
		return out
	}
	for _, w := range words[1:] {
		key, text, _ := strings.Cut(w, "=")
		of, at, _ := strings.Cut(text, "@")
		parts := strings.Split(of, "/")
		switch key {
		case "time":
			c.Time = units.FromMicros(number(text))
		case "sms":
			c.SMs = int32(number(text))
		case "ends":
			c.Ends = times(text)
		case "slack":
			c.Slack = times(text)
		case "need":
			n := Need{Resource: int32(number(at)), Share: number(parts[0])}
			if len(parts) > 1 {
				n.Bytes = number(parts[1])
			}
			c.Needs = append(c.Needs, n)
		case "behind":
			c.Behind = append(c.Behind, Behind{Comm: int32(number(at)), Rate: number(of)})
		case "buffered":
			c.Buffered, c.Receive = true, units.FromMicros(number(text))
		case "slowed":
			c.Slowed = append(c.Slowed, Slowed{number(parts[0]), number(parts[1]), number(parts[2])})
		case "empty":
			c.Empty = true
		}
	}
	return int(number(words[0])), c
}

func spans(d *datadriven.TestData, costs map[int]Cost, gpu *GPU) string {
	p, err := workload.Parse("workload 1\n"+d.Input+"\n", "job")
	if err == nil {
		err = p.Lint()
	}
	if err != nil {
		return "error: " + err.Error()
	}
	in := &Input{Program: p, Resources: 4, Costs: make([]Cost, len(p.Calls))}
	for i := range in.Costs {
		c, ok := costs[i]
		if !ok {
			_, c = costOf([]string{"0"})
		}
		in.Costs[i] = c
	}
	for range p.Ranks() {
		if gpu != nil {
			in.GPUs = append(in.GPUs, *gpu)
		}
	}
	r, err := Run(context.Background(), in)
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for rank, list := range r.Spans {
		fmt.Fprintf(&b, "%d:", rank)
		for _, s := range list {
			b.WriteString(" ")
			if s.Issued < s.Begin {
				fmt.Fprintf(&b, "(%.6g)", s.Issued.Micros())
			}
			if s.Begin < s.End {
				fmt.Fprintf(&b, "%.6g-", s.Begin.Micros())
			}
			fmt.Fprintf(&b, "%.6g", s.End.Micros())
		}
		b.WriteString("\n")
	}
	return b.String()
}
