package sim

import "github.com/simccl/simccl/trace"

// tracer reports a run to a sink; a nil tracer is silent.
type tracer struct{}

func newTracer(e *engine, sink trace.Sink) (*tracer, error) { return nil, nil }

func (t *tracer) kernel(e *engine, dev int32) {}
func (t *tracer) piece(e *engine, g *group)   {}
