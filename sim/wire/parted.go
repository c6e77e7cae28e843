package wire

// Parted is a Model of which parts can run side by side.
type Parted interface {
	Model
	// Names lists the links' names, and NumRoutes counts the routes.
	Names() []string
	NumRoutes() int
	// Split returns n models of the same links and routes, between two instants, after Next.
	// part says of which one the flows of each route are, those in flight and those to
	// come; routes that have a link in common are of one. Each may be used by
	// another goroutine then. flows are the new numbers of those in flight, by the
	// old ones. The whole reports Loads, and has no flows any more.
	Split(n int, part []int32) (models []Model, flows []FlowID)
}
