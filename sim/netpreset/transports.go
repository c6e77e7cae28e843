package netpreset

import (
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
)

// Transports fills in what NCCL's settings say of queue pairs and sockets.
func Transports(cfg *sim.Config, c *config.Config) {
	ib, sockets := &c.IB, &c.Socket
	if s := ib.Service; s != nil {
		cfg.RC = sim.Reliability{Timeout: units.Some(int(s.Timeout)), Retries: units.Some(int(s.Retry))}
	}
	cfg.QPs, cfg.SplitData = ib.QPs.Or(0), ib.SplitData
	cfg.Sockets = sim.Sockets{Threads: sockets.Threads, PerThread: sockets.SocksPerThread,
		MinTask: sockets.MinTask, Inline: sockets.Inline}
	cfg.TwoWrites = units.Some(units.Bytes(ib.ARThreshold.Or(8192)))
	if ib.Adaptive.Or(1) == 0 {
		cfg.TwoWrites = units.Some[units.Bytes](-1)
	}
}

// Framed reports whether a model simulates frames, everywhere or where queues form.
func Framed(model string) bool { return model != "" && model != "flow" }

// Refused says why a model of the network does not go with how times are found, and
// what to write instead; empty where it does.
func Refused(as Choice, fidelity, fold string) (member, problem, hint string) {
	switch framed := Framed(as.Model); {
	case as.CC != "" && !framed:
		return "cc", "is of senders whose packets are simulated", "write --network packet or hybrid"
	case as.Balance != "" && !framed:
		return "balance", "is of packets that are simulated", "write --network packet"
	case framed && (fidelity == "alpha" || fold == "exact" || fold == "near"):
		return "model", "needs every rank and its messages", "leave fidelity alpha, and folding, out"
	}
	return "", "", ""
}
