package wire

// Parted is a Model of which parts can run side by side.
type Parted interface {
	Model
	// Split returns so many models of the same links and routes, after Seal and before the
	// first flow. Of routes that have a link in common, or are one, all flows are to be of
	// one model; then each may be used by another goroutine. The whole reports Loads, and
	// has no flows of its own any more.
	Split(n int) []Model
}
