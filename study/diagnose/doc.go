// Package diagnose answers whether measured times are what the machine should give, and if not,
// why. In: files in any form that people have (tables of nccl-tests, logs of NCCL, topology dumps,
// matrices, what nvidia-smi, ibstat, ethtool and lspci print), and a Spec of what is known beside
// them. Out: a Report with a verdict for each size, suspects in order, and what is missing.
//
// Expected times are simulations with the uncertainty that machine and network class state. A
// suspect is a change of the Spec (a fault, a setting, another release): it is simulated like the
// machine itself, and ranked by how well the whole measured curve follows it.
//
// What it must not know: flags, terminals.
package diagnose
