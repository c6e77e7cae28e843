// Package rng provides the random numbers of packet runs: those of ns-3, stream by stream; htsim's generator
// and path hash; and hashes of a seed, a link and a frame's number, which need no order between nodes.
//
// In: seeds, streams, numbers of links and frames. Out: numbers. It must not know what they decide.
package rng
