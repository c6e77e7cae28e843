// Package coll names what a communicator is asked to do and how NCCL does it:
// operations, algorithms, protocols, data types and reductions, each with the
// words of NCCL and of nccl-tests and with a parser that reads both; the sizes
// of elements and their arithmetic on host memory (device/reduce_kernel.h); and the
// arithmetic of nccl-tests that converts a size on its command line into counts and
// a time into bandwidths.
//
// It is a leaf: it knows no topology and no time, and imports only units.
// Counterparts: NCCL 2.28.9 src/init.cc:49-51, src/collectives.cc and
// src/nccl.h.in; nccl-tests 2.19.6 src/common.cu and src/<test>.cu.
package coll
