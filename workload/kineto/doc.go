// Package kineto reads the recording of one rank by PyTorch's profiler (Kineto): a Chrome trace of GPU
// operations, the runtime calls that launched them, waits between streams and the process group's calls.
//
// It keeps what a reconstruction of the job needs, at most 100 bytes per operation, and skips the rest:
// operators of the framework, Python frames, flows. It draws no conclusions; package rebuild does.
//
// Input: JSON text with members in any order, the bare array of events that some tools write, and files
// truncated within an event. Times are nanoseconds since the Unix epoch, or since another origin if the file
// has no baseTimeNanoseconds.
//
// What it must not know: files and their compression, programs, topologies.
//
// Written by libkineto (src/output_json.cpp) and PyTorch 1.8 to 2.11 (torch/csrc/profiler,
// torch/csrc/distributed/c10d/ParamCommsUtils.hpp).
package kineto
