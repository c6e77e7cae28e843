// Package overlap predicts the cases of a table of overlap measurements: collectives with concurrent compute,
// two communicators at once, sends and receives, groups and late ranks.
//
// In: the table's text and, for each configuration of a communicator, the machine. Out: for each row the
// measured and the simulated values. It knows no files and no flags. The table is written by a PyTorch
// script: sections that begin with ##, a line of column names, and one row per case.
package overlap
