package session

import (
	"fmt"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/workload"
)

// Trace writes a job's timeline: a process a rank, a track a stream, a slice a
// step. A call's slice begins with its kernel; its arguments say since when its
// stream was there, and how long the call takes by itself.
func (r *Result) Trace(sink trace.Sink) {
	for rank := range r.Program.Of {
		steps := r.Program.Lists[r.Program.Of[rank]].Steps
		tracks := map[int32]trace.TrackID{}
		for i := range steps {
			s, at := &steps[i], &r.Spans[rank][i]
			if s.Kind != workload.Compute && s.Kind != workload.Issue || at.End <= at.Begin {
				continue
			}
			track, ok := tracks[s.Stream]
			if !ok {
				track = sink.Track(r.track(rank, s.Stream))
				tracks[s.Stream] = track
			}
			e := trace.Event{Track: track, Start: at.Begin, Dur: at.End - at.Begin}
			r.describe(&e, s, i, rank)
			sink.Emit(&e)
		}
	}
}

// track is the lane of a rank's stream.
func (r *Result) track(rank int, stream int32) trace.Track {
	name := fmt.Sprintf("stream %d", stream)
	if workload.OnHost(stream) {
		name = fmt.Sprintf("host thread %d", stream-workload.HostStream)
	}
	return trace.Track{Process: int64(rank), ProcessName: fmt.Sprintf("rank %d", rank), ProcessSort: int64(rank),
		Thread: int64(stream), ThreadName: name, ThreadSort: int64(stream)}
}

// describe names a step's slice.
func (r *Result) describe(e *trace.Event, s *workload.Step, i, rank int) {
	at := &r.Spans[rank][i]
	if s.Kind == workload.Compute {
		e.Cat, e.Name = "compute", "compute"
		if workload.OnHost(s.Stream) {
			e.Cat, e.Name = "host", "host"
		}
		if s.Work > 0 {
			e.Name = r.Program.Works[s.Work-1].Name
		}
		e.Args = []trace.Arg{trace.Int("step", int64(i)), trace.Num("alone_us", s.Time.Micros()*r.Program.FactorOf(rank))}
		return
	}
	c, x := &r.Program.Calls[s.Call], &r.Calls[s.Call]
	e.Cat, e.Name = "NCCL", c.Func.String()
	e.Args = []trace.Arg{trace.Int("step", int64(i)), trace.Str("comm", r.Program.Comms[c.Comm].Name), trace.Int("bytes", int64(c.Bytes())),
		trace.Num("alone_us", x.Alone.Micros()), trace.Num("waited_us", (at.Begin - at.Issued).Micros()), trace.Int("channels", int64(x.Channels))}
}
