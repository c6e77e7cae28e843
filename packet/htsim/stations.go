package htsim

import (
	"github.com/simccl/simccl/internal/heap"
	"github.com/simccl/simccl/units"
)

// probe is the first data frame of a flow, or its acknowledgement: probes are followed through switches only
// to find the order in which htsim draws the tables of its switches.
type probe struct {
	Flow int32
	Ack  bool
	Link int // by which it leaves a switch
}

// Way is the index of its size in router.sizes: 0 for data and 1 for acknowledgements.
func (f probe) Way() int {
	if f.Ack {
		return 1
	}
	return 0
}

// stationQueues moves frames through stations as the event queue of htsim does (sim/pipe.cpp,
// sim/queue.cpp): a station that holds several frames has one event, that of its first; the next is planned
// when that has happened. So events of one time at several stations take turns. The zero value is ready.
type stationQueues struct {
	waiting [][]held // by station
	events  heap.Heap[event]
	planned int64
}

// held is a frame at a station: it leaves at a time, but so long after the one before it at least.
type held struct {
	probe
	at, lasts units.Time
}

type event struct {
	at      units.Time
	order   int64 // in which those of one time were planned
	station int
}

// Before implements heap.Ordered: by time, then by the order of planning.
func (e event) Before(o event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// Enter puts a frame into a station. It leaves at a time, or, if that is later, when it has been served for
// as long as it lasts since then or since the one before left.
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

// Run hands each frame that leaves a station on, until none is left.
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
