//go:build !race

package golden

// UnderRace reports that the race detector is on.
const UnderRace = false
