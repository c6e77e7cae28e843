// Package logcheck compares a real log of NCCL with simccl's decisions: it reads version, settings and
// topology from the log, builds the same communicators and compares NCCL's output line by line: systems,
// graphs, rings, trees, channels, the cost table and the choices of operations.
package logcheck
