package comm

// Unverified names the decisions of this communicator that were compared with NCCL's source only, not with a
// run; "" if none.
func (c *Comm) Unverified() string {
	if !c.CollNet.Enabled {
		return ""
	}
	return "what NCCL " + c.Params.Rules.Version() +
		" does where the network reduces (CollNet) is taken from " +
		"its source alone: no decision of a machine with SHARP and no measurement was there to confirm it"
}
