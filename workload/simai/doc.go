// Package simai reads and writes SimAI's text workloads: a line with the parallelism, the number of rows, and
// for each layer compute times and collectives of the forward pass, the input gradient and the weight
// gradient.
//
// Sizes are in bytes as nccl-tests defines them. Collectives run on the tensor parallel group, those of
// weight gradients on the data parallel one; the suffixes _EP and _DP_EP name expert groups. Collectives of
// the forward pass and of input gradients are awaited at once, those of weight gradients at the end.
//
// What it must not know: files, machines.
//
// Source: aliyun/SimAI cef83f9, astra-sim-alibabacloud/astra-sim/workload/Workload.cc.
package simai
