// Package topos carries the topology file that is used where none is given,
// so that a bare binary has something true to work on. The other files of this
// directory are test input and are not compiled in; README.md says where each
// comes from.
package topos

import _ "embed"

// DGXH100Name is the name under which messages and tables show DGXH100.
const DGXH100Name = "dgx-h100.xml"

// DGXH100 is NCCL's topology XML of one DGX H100: eight H100-SXM behind
// NVSwitches and eight ConnectX-7 400 Gb/s, one PCIe switch for each pair. It
// is not to be written to.
//
//go:embed dgx-h100.xml
var DGXH100 []byte
