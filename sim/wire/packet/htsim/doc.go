// Package htsim reads the connection matrices (.cm) and topology files of htsim
// (spcl/HTSIM, commit 8a33f33) as networks and flows of package uec.
//
// In: the text of the files. Out: a Scenario. Topologies have two tiers; triggers
// are those that fire once, or when all flows that feed them have ended. What else
// these files can say is refused by type.
//
// It must not know how frames are simulated. Errors name file, line and column.
package htsim
