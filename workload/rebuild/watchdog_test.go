package rebuild

import (
	"testing"

	"github.com/simccl/simccl/workload/kineto"
)

// TestWorksThatEndedAreAskedAgain: a watchdog asks for the works of its group round by round: once for one
// that runs, and several times in a row for one that has ended, before it drops it. The last questions for
// an event name its work; those asked once name none.
func TestWorksThatEndedAreAskedAgain(t *testing.T) {
	s := newStory(0, 1)
	s.step(0, 1000)
	for i := range int64(3) { // three works, which end at 100, 200 and 300
		s.allReduce(10+i, 100*i+20, 100*i+100, 7)
	}
	events := map[uint32]int64{}
	ask := func(at int64, list ...int64) {
		for i, e := range list {
			c := s.call(kineto.Query, at+int64(i))
			s.t.Calls[len(s.t.Calls)-1].Thread = 9
			events[c] = e
			s.t.Syncs = append(s.t.Syncs, kineto.Sync{Corr: c, Kind: kineto.SyncEvent, Stream: -1, WaitOn: -1,
				Event: e, RecordCorr: -1})
		}
	}
	ask(50, 11, 12, 13)
	ask(120, 11, 11, 12, 13)
	ask(250, 12, 12, 13)
	ask(350, 13, 13)
	for i := range int64(3) { // stream 5 waits for each, with nothing that names it but the event
		at := 500 + 100*i
		s.kernel(at-50, at-40, at-30, 5)
		wait := s.call(kineto.WaitEvent, at)
		s.kernel(at+1, at+5, at+15, 5)
		s.t.Syncs = append(s.t.Syncs, kineto.Sync{Corr: wait, Kind: kineto.WaitEvent, Stream: 5, WaitOn: -1,
			Event: 11 + i, RecordCorr: -1})
	}
	res, err := Job([]*kineto.Trace{s.t}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := res.Waits; w.Watchdog != 3 || w.Guessed+w.Unknown+w.Disproved != 0 {
		t.Errorf("found %+v, want three by the watchdog", w)
	}
}
