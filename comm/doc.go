// Package comm is the communicator: it connects the pure stages and decides nothing itself. From Systems it
// searches the graphs (equal Systems once), joins them into channels, computes the cost model, and answers
// what NCCL would choose and how the work is then planned.
//
// Input: a cluster (or bare Systems) and every stage's Params. Output: Comm. Pure: no clock, no environment.
// It must not know topology files, flags or what runs a plan. NCCL counterpart: init.cc initTransportsRank at
// v2.28.9.
package comm
