// Package config reads the settings: flags, environment and configuration
// files become one Config that remembers where each value came from and fills
// the Params of every room.
//
// One table (Vars) names every variable that NCCL 2.28.9 reads: spelling, form,
// default, meaning, the room that takes it into account, or why it has no
// effect here, or that it is not supported. docs/ENV.md is generated from it.
//
// Values are read as NCCL reads them (misc/param.cc): numbers by strtoll with
// base 0, of which text that is no number gives 0; a file fills only what is
// not set yet. Where NCCL accepts a value without a message that cannot be intended, Load
// returns a Warning with the place and what to write instead.
//
// It reads no environment by itself: the caller hands it over in Sources. NCCL
// counterpart: misc/param.cc, init.cc (envConfigOverride), and every NCCL_PARAM.
package config

//go:generate go run ../dev/cmd/pages env ../docs/ENV.md
