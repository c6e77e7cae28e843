// Package release finds the rules for what a user names: a release of NCCL, a
// version of PyTorch that brings one, or the file of a library.
//
// In: text ("2.27.3", "v2.28.9-1", "torch==2.8"), or the bytes of a library. Out:
// the Ruleset, and a note where another release than the one named answers. It
// executes nothing of a library: it reads the text that NCCL prints as its version.
package release
