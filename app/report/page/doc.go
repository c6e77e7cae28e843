// Package page writes a run as one HTML file that needs nothing else: no
// network, no script. It draws with SVG in light and dark, fits a phone, and
// equal input gives equal bytes. Every drawn element shows its numbers when the
// pointer rests on it; the tables below say the same in words. Files job*.go do so for a
// program of ranks: its groups with their calls and bytes, computations, the host's time, and
// what its recording measured. machine.go lays out the drawing of one host, for topo show and
// for the web page too: CPUs above, PCI trees below them with all GPUs and NICs in one row,
// NVSwitches at the foot, and no line through a box that is not its end.
//
// Pages are written by hand and not with html/template: a program that links that
// package keeps every exported method of every type, three megabytes of this one
// (CONTRIBUTING.md). All text goes through Text or chart.EscapeXML.
package page
