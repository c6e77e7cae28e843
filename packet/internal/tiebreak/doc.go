// Package tiebreak orders simultaneous events as a simulator with an event queue does: by when they were
// scheduled.
//
// An event is scheduled while another one happens, its cause. So two simultaneous events have the order of
// their causes, recursively if these were simultaneous, too. A network schedules events when a frame begins
// (its end, its arrival) and when pacing delays a sender (the end of the delay). So it is enough to record
// when each of these began and its cause:
//
//	frame a at port 1   caused by ◀── frame c, begun at 83 ns   ┐ c was first: so a is before b,
//	frame b at port 2   caused by ◀── frame d, begun at 84 ns   ┘ though both arrive at 1166 ns
//
// Two events are rarely compared. When they are, the causes of each are followed back until their times
// differ. The result is cached for each pair on the way, so that a later walk ends where an earlier one
// passed. Old records are discarded; before that, records that may still be compared get their final rank.
//
// In: each event begun in a window, its time and its cause. Out: which of two events was first, and the
// random draws in that order. It must not know frames or hosts.
package tiebreak
