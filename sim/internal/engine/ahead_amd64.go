package engine

// These ask for what will be read soon, and do not wait for it.

//go:noescape
func fetchGroup(of *Group)

//go:noescape
func fetchStream(of *Group)

//go:noescape
func fetchConn(of *Conn)
