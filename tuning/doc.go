// Package tuning is NCCL's cost model and its choice: from the final graphs of
// a communicator it computes latency and bandwidth of every collective,
// algorithm and protocol, and from these, for one operation, the winner with
// its channels and threads, or why a rival is off.
//
// Input: what all ranks agreed on (Input) and the user's settings (Params).
// Output: Model, whose Choose answers for one operation. Pure: no clock, no
// environment; equal input gives equal bits. It knows no ops, no chunks, no
// channels' peers.
//
// NCCL counterpart: graph/tuning.cc (tables and model) and enqueue.cc
// (updateCollCostTable, topoGetAlgoInfo). NCCL mixes float32 and float64 in
// these; every step here keeps the type it has there, and every product that
// is summed is converted first so that no fused multiply-add changes a bit.
package tuning
