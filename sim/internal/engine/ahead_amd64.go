package engine

// The fetch functions are prefetch instructions: they do not wait for memory.

//go:noescape
func fetchGroup(of *Group)

//go:noescape
func fetchStream(of *Group)

//go:noescape
func fetchConn(of *Conn)
