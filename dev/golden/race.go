//go:build race

package golden

// UnderRace reports that the race detector is on, which makes everything about
// ten times slower.
const UnderRace = true
