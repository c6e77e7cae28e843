// Package htsim reads the connection matrices (.cm) and topology files of htsim (spcl/HTSIM, commit 8a33f33)
// as networks and flows of package uec.
//
// In: the text of the files. Out: a Scenario. Topologies have two or three tiers; triggers fire once, several
// times, or when all flows that feed them have ended. Anything else in these files is refused with a typed
// error.
//
// It must not know how frames are simulated. Errors name file, line and column.
package htsim
