// Package rules holds what differs between releases of NCCL: a Ruleset is one
// release's constants, tables and switches, each beside the place in NCCL's
// source that it comes from. Stages use the Ruleset in their Params; what all
// releases have in common stays in the stage, with its citation there.
//
// Input: a release, as text ("2.28.9"). Output: its Ruleset, a fresh value that
// the caller owns; nothing here keeps state, so no caller can change another's
// rules. Pure. It knows no topology, graph or operation: kinds of paths are
// Levels, figures by compute capability are rows.
//
// # Another release
//
// A release is a constructor like nccl2289, which starts from the constructor of
// a neighbouring release and sets what differs. Most differences are values that
// exist already: a cap, a limit, a level, a switch. Where a release computes in
// another manner, the field is a function of plain numbers (NVLSBandwidth,
// PeerChannels), and the release brings its own. No stage is copied.
//
// Citations are file:line below src/ at the tag of the release, v2.28.9-1 where
// no other is named.
package rules
