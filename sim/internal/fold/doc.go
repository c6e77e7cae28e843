// Package fold finds ranks and channels of a plan that behave equally, and lays
// out an engine in which one of each kind runs.
//
// In: an engine without groups, its plan, and what can make ranks differ
// (Config). Out: Proposals, and a Quotient of one that holds. It proposes
// symmetries by the structure of a communicator (symmetry.go, trees.go, chain.go,
// rotation.go, nodes.go), proves each for the given plan by walking over all
// real traffic (scan.go), and drops those that do not hold. A symmetry that
// nearly holds has a margin, which was seen against full runs.
//
// Example: an all_reduce ring over 1,000 equal nodes of 8 GPUs is represented by
// the 8 ranks of one node; the last of them sends to the first, on links that
// carry as much as those of every node.
package fold
