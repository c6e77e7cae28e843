// Package logcheck compares a real log of NCCL with what simccl decides: it
// takes version, settings and topology out of the log, makes the same
// communicators and compares line by line what NCCL printed: systems, graphs,
// rings, trees, channels, the cost table and the choices of operations.
package logcheck
