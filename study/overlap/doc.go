// Package overlap predicts the micro-cases of a table of overlaps: collectives
// beside compute, two communicators at once, sends and receives, groups and late
// ranks, from the columns that say what was run.
//
// In: the table's text and, for each configuration of a communicator, the machine.
// Out: for each row what was measured beside what is simulated. It knows no files
// and no flags. The table is one that a PyTorch script writes: sections that begin
// with ##, a line of column names, and a row a case.
package overlap
