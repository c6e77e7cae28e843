//go:build !race

package golden

// underRace tells that the race detector is on.
const underRace = false
