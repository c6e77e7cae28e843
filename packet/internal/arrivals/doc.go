// Package arrivals sorts the frames that arrive at a node in a window by egress port and time, without moving
// them.
//
// In: the arrival time and egress port of each frame; frames are numbered in the order that decides between
// equal times. Out: sorted keys, from which these numbers can be read. It must not know the frames
// themselves.
package arrivals
