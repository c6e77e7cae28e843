package chrome

import (
	"bufio"
	"bytes"
	"math"

	"github.com/simccl/simccl/trace/perfetto"
	"github.com/simccl/simccl/units"
)

// proto reads packets of Perfetto's format. An event's Line is the number of its packet.
func (p *parser) proto(in *bufio.Reader) (*Info, error) {
	err := perfetto.Read(in, p.head, perfetto.Sink{Time: p.at, Event: p.packet,
		Meta: func(text []byte) error {
			p.lex = newLexer(bytes.NewReader(text), 0)
			return p.otherData()
		}})
	if err == nil && p.base != math.MinInt64 {
		p.info.Base = p.base
	}
	return p.info, err
}

// at converts a packet's time in ns to one relative to the base.
func (p *parser) at(ns int64) (units.Time, string) {
	p.event = Event{HasTS: true}
	p.whole, p.pico = ns/1000, ns%1000*1000
	p.settle()
	return p.event.TS, p.event.BadTS
}

// packet converts an event of Perfetto's format to one of this package's.
func (p *parser) packet(e *perfetto.Event) error {
	p.event = Event{Line: e.Packet, Phase: e.Phase, PID: e.PID, TID: e.TID, TS: e.TS, Dur: e.Dur,
		HasTS: e.HasTS, HasDur: e.HasDur,
		BadTS: e.BadTS, Cat: e.Cat, Name: e.Name, ID: e.ID, Bind: e.Bind, Args: e.Args}
	p.info.Events++
	return p.each(&p.event)
}
