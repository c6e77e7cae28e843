package host

import (
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// transport is how a connection's steps get to its other end: as messages from
// host to host, or into the network that reduces them. Where a run is handled in parts
// (apart.go), n is the part's.
type transport interface {
	// posted: the sending kernel has posted a step.
	posted(n *Network, id int32)
	// freed: the receiving kernel has read a step, which the proxy sees at time t.
	freed(n *Network, id int32, t units.Time)
}

// messenger is a transport of messages from host to host. RDMA and TCP differ in
// these points; the walk of a step through its stages is the same (step.go).
type messenger interface {
	transport
	// latency is how long a small message takes.
	latency() units.Time
	// issued is when a message begins that the proxy thread is done with at time t.
	issued(c *Conn, t units.Time) units.Time
	// offered is when the sender may use the room that was offered at time t.
	offered(c *Conn, t units.Time) units.Time
	// ack is how long after its last byte the sender's completion is there.
	ack(c *Conn) units.Time
	// divide says over how many queue pairs a message goes, and how much of it over
	// each but the last.
	divide(c *Conn, n units.Bytes) (parts int32, each units.Bytes)
	// part is how much the q-th queue pair carries of a message.
	part(s *split, q int32) units.Bytes
	// next reports whether the connection's next message may begin; where not yet,
	// it sees to it that it will.
	next(n *Network, id int32, c *Conn) bool
	// through notes that a message is through.
	through(n *Network, c *Conn)
	// lastCopy is how long the receiver copies when all of the k-th step has come.
	lastCopy(c *Conn, k int64) units.Time
	// attempt returns how many bytes of a write are sent until the sender knows of
	// a loss, and how fast; ok is false where nothing gets through.
	attempt(p int32, n units.Bytes) (send units.Bytes, bound wire.Rate, ok bool)
	// failure is why a queue pair gives up in place of another attempt; nil where
	// it does not.
	failure(l *QueuePair) error
}

// stageCosts is what each stage of a step takes of a proxy thread.
type stageCosts [numStages]stageCost

// stageCost is how many polls of a connection's end a stage takes, and the
// thread's time. A poll goes no further than one change of state ends it
// (transport/net.cc:1237 and 1418). Example: over RDMA one poll offers the slot
// to the kernel and the next one posts the write, so stagePost takes 2.
type stageCost struct {
	polls int32
	time  units.Time
}
