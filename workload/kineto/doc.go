// Package kineto reads what PyTorch's profiler (Kineto) recorded of one rank: a
// Chrome trace of GPU operations, of the runtime calls that launched them, of
// waits between streams and of what the process group was asked to do.
//
// It keeps what a reconstruction of the job needs, in at most 100 bytes an
// operation, and passes over the rest: operators of the framework, Python
// frames, flows. It draws no conclusions; package rebuild does.
//
// Input: the JSON text in any order of its members, also the bare array of
// events that some tools write, also a file that ends in the middle of an event.
// Times are nanoseconds since the Unix epoch, or since another origin where the
// file has no baseTimeNanoseconds.
//
// What it must not know: files and their compression, programs, topologies.
//
// Written by libkineto (src/output_json.cpp) and PyTorch 1.8 to 2.11
// (torch/csrc/profiler, torch/csrc/distributed/c10d/ParamCommsUtils.hpp).
package kineto
