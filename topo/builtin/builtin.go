// Package builtin carries the topology files that are used by name, so that a
// bare binary has a real machine to work on.
package builtin

import _ "embed"

// DGXH100Name is the name under which messages and tables show DGXH100.
const DGXH100Name = "dgx-h100.xml"

//go:embed dgx-h100.xml
var dgxH100 []byte

// DGXH100 returns NCCL's topology XML of one DGX H100: eight H100-SXM behind
// NVSwitches and eight ConnectX-7 400 Gb/s, one PCIe switch for each pair.
func DGXH100() []byte { return append([]byte(nil), dgxH100...) }
