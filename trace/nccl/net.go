package nccl

import (
	"math"
	"slices"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// linkTrack is one directed link: counters of its rate and utilization and, at packet detail, lanes of its
// transfers.
type linkTrack struct {
	name, rate, use string
	waiting         string
	capacity        float64 // GB/s
	id              trace.TrackID
	registered      bool
	last            float64
	lastAt          units.Time
	lanes           trace.Lanes
	ids             []trace.TrackID
}

// Link declares a directed link with a capacity in GB/s and returns its handle.
func (r *Recorder) Link(name string, capacity float64) int {
	r.links = append(r.links, linkTrack{name: name, rate: name + " GB/s", use: name + " util %",
		waiting: name + " queued B", capacity: capacity})
	return len(r.links) - 1
}

func (r *Recorder) linkTrack(link, lane int) trace.TrackID {
	tid := int64(link + 1)
	if lane > 0 {
		tid = int64(highTID + 4096*link + lane)
	}
	return r.sink.Track(trace.Track{Process: LinksPID, ProcessName: "links", ProcessSort: 200000,
		Thread: tid, ThreadSort: int64(link+1)*1000 + int64(lane), ThreadName: r.links[link].name})
}

// Rate writes the load of a link from at on, in GB/s; equal consecutive loads are written once.
func (r *Recorder) Rate(link int, at units.Time, gbps float64) {
	l := &r.links[link]
	if !r.Wanted(DetailStep) || gbps == l.last {
		return
	}
	r.register(link)
	l.last, l.lastAt = gbps, at
	r.counter(l.id, at, l.rate, "GB/s", gbps)
	if l.capacity > 0 {
		r.counter(l.id, at, l.use, "%", math.Round(1e4*gbps/l.capacity)/100)
	}
}

func (r *Recorder) register(link int) {
	if l := &r.links[link]; !l.registered {
		l.id, l.registered = r.linkTrack(link, 0), true
	}
}

// Waiting writes the number of bytes queued for a link from at on.
func (r *Recorder) Waiting(link int, at units.Time, n units.Bytes) {
	if !r.Wanted(DetailStep) {
		return
	}
	r.register(link)
	r.counter(r.links[link].id, at, r.links[link].waiting, "B", float64(n))
}

// netSort is the viewer's position of the packet network: above the ranks, first pauses, of which there are
// few, then ports, then queue pairs.
const netSort = -1 << 29

// port returns the track of a link's port in a packet network.
func (r *Recorder) port(link int) trace.TrackID {
	return r.sink.Track(trace.Track{Process: PortsPID, ProcessName: "ports of the network",
		ProcessSort: netSort + 1,
		Thread:      int64(link + 1), ThreadSort: int64(link + 1), ThreadName: r.links[link].name})
}

// Queued writes the number of bytes in a port's queue from at on.
func (r *Recorder) Queued(link int, at units.Time, n units.Bytes) {
	if r.Wanted(DetailStep) {
		r.counter(r.port(link), at, r.links[link].waiting, "B", float64(n))
	}
}

// Marked writes the number of frames marked at a port since the previous state.
func (r *Recorder) Marked(link int, at units.Time, n int64) {
	if r.Wanted(DetailStep) {
		r.counter(r.port(link), at, r.links[link].name+" marked", "frames", float64(n))
	}
}

// NoCredits is the name of a slice during which a port waited for credits.
const NoCredits = "no credits"

// Paused writes a slice during which a port could not send: its neighbour had paused it, or granted no
// credits.
func (r *Recorder) Paused(link int, start, end units.Time, credits bool) {
	if r.Wanted(DetailStep) && end > start {
		id := r.sink.Track(trace.Track{Process: PausesPID, ProcessName: "paused ports", ProcessSort: netSort,
			Thread: int64(link + 1), ThreadSort: int64(link + 1), ThreadName: r.links[link].name})
		name := "paused"
		if credits {
			name = NoCredits
		}
		r.slice(id, start, end, "link", name, r.args[:0])
	}
}

// Pace writes the rate at which congestion control lets a queue pair send, in GB/s on the wire.
func (r *Recorder) Pace(pair string, at units.Time, gbps float64) {
	if !r.Wanted(DetailStep) {
		return
	}
	id := r.sink.Track(trace.Track{Process: PairsPID, ProcessName: "queue pairs", ProcessSort: netSort + 2,
		Thread: 1, ThreadName: "rates"})
	r.counter(id, at, pair+" GB/s", "GB/s", gbps)
}

func (r *Recorder) counter(track trace.TrackID, at units.Time, name, key string, v float64) {
	r.event = trace.Event{Phase: trace.Counter, Track: track, Start: at, Name: name,
		Args: append(r.args[:0], trace.Num(key, v))}
	r.sink.Emit(&r.event)
}

// Transfer writes the slice of one transfer on a link (packet detail).
func (r *Recorder) Transfer(link int, start, end units.Time, src, dst, channel int, bytes units.Bytes) {
	if !r.Wanted(DetailPacket) {
		return
	}
	l := &r.links[link]
	lane := l.lanes.Place(start, end)
	if lane >= len(l.ids) {
		l.ids = append(l.ids, r.linkTrack(link, lane))
	}
	r.slice(l.ids[lane], start, end, "link", "transfer", append(r.args[:0], trace.Int("src", int64(src)),
		trace.Int("dst", int64(dst)), trace.Int("Channel", int64(channel)), trace.Int("bytes", int64(bytes))))
}

// Critical writes one slice of the critical path. Slices must follow each other without overlap.
func (r *Recorder) Critical(start, end units.Time, name string, rank, channel int) {
	if !r.Wanted(DetailChannel) || end <= start {
		return
	}
	id := r.sink.Track(trace.Track{Process: CriticalPID, ProcessName: "critical path", ProcessSort: pathSort,
		Thread: 1, ThreadName: "critical path"})
	r.tinted(id, start, end, "critical", name, tintOf(name),
		append(r.args[:0], trace.Int("Rank", int64(rank)), trace.Int("Channel", int64(channel))))
}

// tintOf returns the tint of a slice of the critical path.
func tintOf(name string) trace.Tint {
	if w := slices.Index(waitName[:], name); w >= 0 {
		return waitTint[w]
	}
	switch name {
	case "kernel":
		return trace.Computes
	case "launch":
		return trace.Calls
	}
	return trace.Plain
}

// Finish sets every counter to zero at the end of the run. It does not close the sink.
func (r *Recorder) Finish(end units.Time) {
	if r.off {
		return
	}
	for i := range r.nics {
		r.nics[i].drain(r, end)
	}
	for i := range r.links {
		l := &r.links[i]
		if l.last != 0 {
			r.Rate(i, max(end, l.lastAt), 0)
		}
	}
}
