package sim

import "fmt"

// ConfigError is a Config that contradicts itself.
type ConfigError struct{ Field, Problem string }

func (e *ConfigError) Error() string { return fmt.Sprintf("simulator: %s: %s", e.Field, e.Problem) }

// RouteError is a connection for which the topology has no path.
type RouteError struct {
	Node     int
	From, To string
}

func (e *RouteError) Error() string {
	return fmt.Sprintf("simulator: node%d: no path from %s to %s in the topology", e.Node, e.From, e.To)
}

// DeadlockError means that the plan stopped before its end: some op waits for
// data or room that never comes.
type DeadlockError struct {
	Waiting       int   // groups that wait
	Rank, Channel int32 // the first of them
	Seq           int32 // and the op it waits in
}

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("simulator: the plan deadlocks: %d groups wait, the first is rank %d channel %d at op %d",
		e.Waiting, e.Rank, e.Channel, e.Seq)
}
