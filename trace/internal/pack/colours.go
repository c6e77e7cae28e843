package pack

import "github.com/simccl/simccl/trace"

// colours are the names under which the trace viewer of Catapult keeps colours
// (tracing/base/color_scheme.html): what sends is blue, what takes data over orange, a
// kernel green, a copy pale blue, waits grey, idle nearly white, calls tan. Viewers that do not know
// them choose colours of their own.
var colours = [trace.NumTints]string{trace.Sends: "rail_response", trace.Receives: "thread_state_iowait",
	trace.Computes: "thread_state_running",
	trace.Copies:   "thread_state_runnable", trace.Waits: "grey", trace.Idles: "thread_state_sleeping",
	trace.Calls: "thread_state_unknown"}

// ColourOf names a tint; "" for the viewer's own colour.
func ColourOf(t trace.Tint) string {
	if t >= trace.NumTints {
		return ""
	}
	return colours[t]
}

// TintOf is the tint of a name, Plain where it is none of ours.
func TintOf(name []byte) trace.Tint {
	for t := trace.Plain + 1; t < trace.NumTints; t++ {
		if string(name) == colours[t] {
			return t
		}
	}
	return trace.Plain
}
