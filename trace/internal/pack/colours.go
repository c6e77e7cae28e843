package pack

import "github.com/simccl/simccl/trace"

// colours are the colour names of Catapult's trace viewer (tracing/base/color_scheme.html) by tint: sends are
// blue, receives orange, kernels green, copies pale blue, waits grey, idle nearly white, calls tan. Viewers
// that do not know the names choose their own colours.
var colours = [trace.NumTints]string{trace.Sends: "rail_response", trace.Receives: "thread_state_iowait",
	trace.Computes: "thread_state_running",
	trace.Copies:   "thread_state_runnable", trace.Waits: "grey", trace.Idles: "thread_state_sleeping",
	trace.Calls: "thread_state_unknown"}

// ColourOf returns the colour name of a tint; "" for the viewer's own colour.
func ColourOf(t trace.Tint) string {
	if t >= trace.NumTints {
		return ""
	}
	return colours[t]
}

// TintOf returns the tint with a colour name; Plain for other names.
func TintOf(name []byte) trace.Tint {
	for t := trace.Plain + 1; t < trace.NumTints; t++ {
		if string(name) == colours[t] {
			return t
		}
	}
	return trace.Plain
}
