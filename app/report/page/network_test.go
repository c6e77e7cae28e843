package page

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/congestion"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// TestNetworkIsDrawn: senders of crowded ports, queues and pauses over time as the
// trace has them, and who waited for them.
func TestNetworkIsDrawn(t *testing.T) {
	p := sample()
	p.Links = []exec.LinkLoad{
		{Name: "leaf0→node2/1", Bytes: 4e6, Net: &exec.Congestion{Inputs: 2, QueuePairs: 2, Peak: 700e3,
			From: []exec.Stream{{From: "node0/1", To: "node2/1", Bytes: 3e6},
				{From: "node1/<1>", To: "node2/1", Bytes: 1e6}}}},
		{Name: "node0/1→leaf0", Bytes: 3e6, Net: &exec.Congestion{Paused: 8 * units.Microsecond, Pauses: 3,
			First: 2 * units.Microsecond, Behind: "leaf0→node2/1",
			Held: []exec.Held{{From: "node0/1", To: "node3/1", Behind: "leaf0→node2/1",
				Time: 5 * units.Microsecond}}}},
	}
	p.Net, p.Ports, p.Crowd = congestion.Of(p.Links), newPorts(),
		"5 of 16 rings share leaf0→spine1: hash collision"
	track := trace.Track{Process: nccl.PortsPID, ThreadName: "leaf0→node2/1"}
	p.Ports.track(1, &track)
	track.ThreadName = "node0/1→leaf0"
	p.Ports.track(2, &track)
	for _, e := range []trace.Event{
		{Phase: trace.Counter, Track: 1, Start: units.Microsecond, Name: "leaf0→node2/1 queued B",
			Args: []trace.Arg{trace.Num("B", 700e3)}},
		{Phase: trace.Counter, Track: 1, Start: 10 * units.Microsecond, Name: "leaf0→node2/1 queued B",
			Args: []trace.Arg{trace.Num("B", 0)}},
		{Phase: trace.Counter, Track: 2, Start: 3 * units.Microsecond, Name: "node0/1→leaf0 queued B",
			Args: []trace.Arg{trace.Num("B", 900e3)}},
		{Phase: trace.Counter, Track: 2, Start: 9 * units.Microsecond, Name: "node0/1→leaf0 queued B",
			Args: []trace.Arg{trace.Num("B", 0)}},
		{Phase: trace.Slice, Track: 2, Start: 2 * units.Microsecond, Dur: 8 * units.Microsecond,
			Name: "paused"},
		{Phase: trace.Slice, Track: 3, Start: 2 * units.Microsecond, Dur: 8 * units.Microsecond,
			Name: "paused"},
	} {
		p.Ports.emit(&e)
	}
	got := write(t, p)
	for _, want := range []string{"75 %<small>3.0 MB</small>", "25 %<small>1.0 MB</small>", "node1/&lt;1&gt;",
		"2 inputs", "leaf0→node2/1: queue to 700 kB, 1 to 10 us",
		"node0/1→leaf0: 1 pauses, 8 us of 2 to 10 us",
		`<td class="t">node0/1</td><td class="t">node3/1</td><td>5.00</td>`,
		"node0/1→leaf0: queue to 900 kB, 3 to 9 us",
		// The deepest queue that is drawn is that of the paused port; it ends the key, and the table has it.
		"<p>5 of 16 rings share leaf0→spine1: hash collision.</p>", "<h3>Queues and pauses over time</h3>",
		"<th>paused us</th>", "</i>paused (thin)</span>",
		"</i>to 900 kB</span>", `<td class="t">node0/1→leaf0</td><td>–</td><td>900 kB</td>`,
		`aria-label="queues and pauses over time"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	p.Links[1].Net.Credits = true // over InfiniBand nothing is paused
	p.Net = congestion.Of(p.Links)
	got = write(t, p)
	for _, want := range []string{"<h3>Queues and credits over time</h3>", "<th>no credits us</th>",
		"</i>no credits (thin)</span>"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page of an InfiniBand run lacks %q", want)
		}
	}
	p.Net = nil
	if strings.Contains(write(t, p), `id="network"`) {
		t.Error("a network of flows is drawn as one of frames")
	}
}
