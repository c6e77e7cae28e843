package topo

// Complete shows complete to tests outside the package.
func Complete(s *System, a *Access, nRanks int) ([]*System, error) {
	return complete(s, &Params{Access: *a}, nRanks)
}
