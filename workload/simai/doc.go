// Package simai reads and writes SimAI's text workloads: a line with the parallelism, the number of rows, and
// for each layer compute times and collectives of the forward pass, the input gradient and the weight
// gradient.
//
// Sizes are in bytes as nccl-tests defines them. Collectives run on the tensor parallel group, those of
// weight gradients on the data parallel one; the suffixes _EP and _DP_EP name expert groups. Collectives of
// the forward pass and of input gradients are awaited at once, those of weight gradients at the end.
//
// AICB's logs of operations are read too (aicb.go): CSV with one call of a group a line and the time that the
// call took when recorded. A log shows one rank; all ranks do the same, each in its own groups. msg_size is
// the size as nccl-tests defines it; _elapsed_time is in milliseconds.
//
// Ranks lie in tensor, expert, data and pipeline parallel groups (grid.go): rank = (pipeline · D + data) · T
// + tensor, as Megatron does; an expert group is E neighbours of a data group.
//
// What it must not know: files, machines.
//
// Source: aliyun/SimAI cef83f9, astra-sim-alibabacloud/astra-sim/workload/Workload.cc; aliyun/aicb
// 23eec3c, log_analyzer/log.py.
package simai
