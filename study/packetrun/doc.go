// Package packetrun runs scenarios of packet simulators (their own input files) on
// packet and reports what came of them: a document for JSON and a text
// for people.
//
// In: names of files and a reader. Out: a Report. It must not know flags,
// streams or exit statuses.
package packetrun
