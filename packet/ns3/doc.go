// Package ns3 reads the configuration, topology and flow files of the HPCC
// simulator on ns-3 (alibaba-edu/High-Precision-Congestion-Control, commit
// 9f4be2a, scratch/third.cc) as a network, flows and settings of package packet.
//
// In: the text of the files. Out: a Scenario, with the frame sizes, the whole
// nanoseconds and the defaults of that simulator. Flow files may have the
// dependency columns of our reference runs: the number of flows that a flow
// waits for, and their indices in the file, from 0.
//
// It must not know how frames are simulated. Errors name file, line and column.
package ns3
