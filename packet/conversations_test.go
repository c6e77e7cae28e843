package packet

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/units"
)

// TestConversations: networks, flows and settings in, what became of them out.
//
//	net     a line a cable, "cable 0 s0 100 1" from host 0 to switch 0 with 100 Gbit/s and 1 us, then a loss
//	        where there is one; and a line a flow, "flow 0 1 50000" with prio=, at= (us) and after=flow
//	run     the same with settings: "set Buffer.Credits 20000", "set CC dcqcn:cx7" or "fault 0 10 90 Down"
//	        of a cable from one us to another, and flows in place of net's where there are some. What
//	        differs from net's is printed
//
// Without settings frames have 1,000 bytes and 48 of headers, buffers 4 MiB, and nothing controls senders.
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		var plain story
		var was *Result
		return func(t *testing.T, d *datadriven.TestData) string {
			s := story{config: *settings(NoCC)}
			s.config.Marking = nil
			if d.Cmd == "run" {
				s.net, s.flows = plain.net, plain.flows
			}
			r, err := s.play(d.Input)
			if err != nil {
				return "error: " + err.Error()
			}
			if d.Cmd == "net" {
				plain, was = s, r
			}
			if r.Windows = 0; d.Cmd == "net" {
				return ruletest.Changes(&Result{}, r)
			}
			return ruletest.Changes(was, r)
		}
	})
}

type story struct {
	net    Network
	flows  []Flow
	config Config
}

func (s *story) play(text string) (*Result, error) {
	own := false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[0] == "flow" && !own {
			own, s.flows = true, nil
		}
		if err := s.line(words); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
	}
	return Run(&s.net, s.flows, &s.config)
}

func (s *story) line(words []string) error {
	number := func(i int) float64 {
		if i >= len(words) {
			return 0
		}
		v, _ := strconv.ParseFloat(words[i], 64)
		return v
	}
	micros := func(i int) units.Time { return units.FromMicros(number(i)) }
	switch words[0] {
	case "cable":
		s.net.Cables = append(s.net.Cables, Cable{A: s.node(words[1]), B: s.node(words[2]),
			Rate: int64(number(3) * 1e9), Delay: micros(4), Loss: number(5)})
	case "flow":
		f := Flow{Src: int32(number(1)), Dst: int32(number(2)), Bytes: int64(number(3)), Priority: 3,
			DstPort: 100}
		for _, w := range words[4:] {
			key, value, _ := strings.Cut(w, "=")
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			switch key {
			case "prio":
				f.Priority = uint8(n)
			case "at":
				f.Start = units.FromMicros(n)
			case "after":
				f.Deps = append(f.Deps, int32(n))
			}
		}
		s.flows = append(s.flows, f)
	case "fault":
		f := Fault{Cable: int(number(1)), From: micros(2), To: micros(3)}
		for _, w := range words[4:] {
			name, value, ok := strings.Cut(w, "=")
			if !ok {
				value = "true"
			}
			if err := ruletest.Set(&f, name, value); err != nil {
				return err
			}
		}
		s.config.Faults = append(s.config.Faults, f)
	case "set":
		if words[1] == "CC" {
			cc, err := Preset(words[2], s.net.Cables[0].Rate)
			s.config.CC = cc
			return err
		}
		if words[1] == "Marking" { // "100,20000,80000,0.2": Gbit/s, bytes, share
			var m Marking
			_, err := fmt.Sscanf(words[2], "%d,%d,%d,%g", &m.Rate, &m.KMin, &m.KMax, &m.PMax)
			m.Rate *= 1e9
			s.config.Marking = []Marking{m}
			return err
		}
		return ruletest.Set(&s.config, words[1], words[2])
	}
	return nil
}

// node is a host, or a switch behind the hosts, of which there are ten at most.
func (s *story) node(name string) int32 {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "s"))
	id := n
	if name[0] == 's' {
		id += 10
	}
	for s.net.Nodes <= id {
		s.net.Nodes++
		s.net.Switch = append(s.net.Switch, s.net.Nodes > 10)
	}
	return int32(id)
}
