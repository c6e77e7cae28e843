// Package calibrate derives from measured times the physical quantities of a
// machine class (sim/gpu.Class): it reads tables of nccl-tests and of our own,
// simulates every measured operation under the settings it was measured with,
// and moves the quantities until the two agree.
//
// Every second size is held out by default and never seen by the fit; a fit
// without a held-out part does not exist. Beside values it yields how far the
// data determine them, and residuals point by point.
//
// It knows no hardware: what is measured, and how, is cmd's. Inputs are files
// through an fs.FS; outputs are values.
package calibrate
