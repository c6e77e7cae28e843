// Package grouplog answers, for recorded groups of NCCL calls, what NCCL launches: the
// lines that it prints of each collective's algorithm, protocol and channels, and the
// time of a group in a CUDA graph.
//
// In: a file of groups (GROUP and TASK lines), a machine. Out: for each group its lines
// in the order in which NCCL prints them, and its time. Lines of NCCL in the file are
// not used for decisions.
package grouplog
