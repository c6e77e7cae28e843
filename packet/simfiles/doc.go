// Package simfiles reads the input files of other packet simulators, whose results ours are held against. It
// must not know how frames are simulated. Errors name file, line and column.
//
// LoadNS3 reads the configuration, topology and flow files of the HPCC simulator on ns-3
// (alibaba-edu/High-Precision-Congestion-Control, commit 9f4be2a, scratch/third.cc) as a network, flows and
// settings of package packet, with the frame sizes, the whole nanoseconds and the defaults of that simulator.
// Flow files may have the dependency columns of our reference runs: the number of flows that a flow waits
// for, and their indices in the file, from 0.
//
// LoadHtsim reads the connection matrices (.cm) and topology files of htsim (spcl/HTSIM, commit 8a33f33) as
// networks and flows of package uec. Topologies have two or three tiers; triggers fire once, several times,
// or when all flows that feed them have ended. Anything else in these files is refused with a typed error.
package simfiles
