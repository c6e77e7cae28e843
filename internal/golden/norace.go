//go:build !race

package golden

// UnderRace tells that the race detector is on.
const UnderRace = false
