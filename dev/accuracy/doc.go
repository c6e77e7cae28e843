// Package accuracy compares simulated times with measured ones: those of
// testdata/measured, under the settings that each file was taken with, and
// published tables of clusters. Its tests write docs/results/ACCURACY.md; dev/cmd/accuracy
// shows single points and fits quantities to them.
package accuracy
