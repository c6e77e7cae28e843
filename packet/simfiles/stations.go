package simfiles

import (
	"github.com/simccl/simccl/internal/heap"
	"github.com/simccl/simccl/units"
)

// probe is the first data frame of a flow, or its acknowledgement: these frames decide when tables are
// shuffled.
type probe struct {
	Flow int32
	Ack  bool
	Link int // link by which it leaves a switch
}

// Way returns the frame's index in router.sizes: 0 data, 1 acknowledgement.
func (f probe) Way() int {
	if f.Ack {
		return 1
	}
	return 0
}

// stationQueues moves frames through stations as htsim's event queue does (sim/pipe.cpp, sim/queue.cpp): a
// station with several frames has one event, that of its first frame, and schedules the next one when it
// happens. So simultaneous events of several stations alternate. The zero value is ready.
type stationQueues struct {
	waiting [][]held // by station
	events  heap.Heap[event]
	planned int64
}

// held is a frame at a station: it leaves at the given time, and at least lasts after the frame before it.
type held struct {
	probe
	at, lasts units.Time
}

type event struct {
	at      units.Time
	order   int64 // of scheduling
	station int
}

// Before orders by time, then by scheduling.
func (e event) Before(o event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// Enter puts a frame into a station. It leaves lasts after at, or lasts after the frame before it.
func (l *stationQueues) Enter(station int, f probe, at, lasts units.Time) {
	for len(l.waiting) <= station {
		l.waiting = append(l.waiting, nil)
	}
	l.waiting[station] = append(l.waiting[station], held{f, at, lasts})
	if len(l.waiting[station]) == 1 {
		l.plan(station, at+lasts)
	}
}

func (l *stationQueues) plan(station int, at units.Time) {
	l.planned++
	l.events.Push(event{at, l.planned, station})
}

// Run calls pass for each frame that leaves a station, until no station holds a frame.
func (l *stationQueues) Run(pass func(station int, f probe, now units.Time)) {
	for l.events.Len() > 0 {
		e := l.events.Pop()
		q := l.waiting[e.station]
		f := q[0].probe
		l.waiting[e.station] = q[1:]
		pass(e.station, f, e.at)
		if q = l.waiting[e.station]; len(q) > 0 {
			l.plan(e.station, max(q[0].at, e.at)+q[0].lasts)
		}
	}
}
