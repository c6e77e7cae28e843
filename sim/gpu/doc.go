// Package gpu knows what one thread group of an NCCL kernel costs on one
// class of machine: how fast it moves bytes by protocol and operands, what a
// slice, a trip and a hop cost, and how groups share their SM. Parameters are
// named physical quantities (class.go, classes.go), each with its unit and its
// source. It knows no topology, no plan and no clock.
package gpu
