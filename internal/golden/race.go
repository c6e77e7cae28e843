//go:build race

package golden

// underRace tells that the race detector is on, which makes everything about
// ten times slower.
const underRace = true
