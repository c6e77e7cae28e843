// Package netpreset makes the settings of a network that is simulated frame by
// frame: what a fabric file says of packets, over a preset, over a congestion
// control that was asked for.
package netpreset
