// Package simai reads and writes SimAI's text workloads: a line of the parallelism, a
// number of rows, and for each layer compute times and collectives of the forward
// pass, the input gradient and the weight gradient.
//
// Bytes are nccl-tests' sizes. Collectives are of the tensor parallel group but for
// those of weight gradients, which are data parallel; the suffixes _EP and _DP_EP
// name expert groups. Forward and input gradient collectives are awaited at once,
// those of weight gradients at the end.
//
// What it must not know: files, machines.
//
// Source: aliyun/SimAI cef83f9, astra-sim-alibabacloud/astra-sim/workload/Workload.cc.
package simai
