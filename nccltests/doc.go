// Package nccltests prints results as nccl-tests 2.19.6 does, byte for byte:
// the table on standard output (src/util.cu) and the JSON of -J. It also reads
// such tables, so that measured and simulated ones can be compared. It only
// formats: sizes, times and bandwidths come from its caller.
package nccltests
