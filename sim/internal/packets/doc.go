// Package packets is a model of links (wire.Messages) that carries messages
// between hosts frame by frame, and shares links within hosts max-min.
//
// In: links, of which cables are declared with their ends; routes; queue pairs;
// messages. Out: when each message has arrived, and what happened on the way. It
// knows nothing of ranks, plans or protocols.
//
// A message has two halves that begin together: its frames cross the cables
// (packet), and its bytes go over the links of both hosts
// (sim/internal/fluid). It has arrived when both are through. On the links of
// hosts the messages of a queue pair go one after the other.
package packets
