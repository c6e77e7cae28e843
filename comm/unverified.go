package comm

// Unverified says what of this communicator's decisions nothing but NCCL's source was
// compared with, "" for nothing.
func (c *Comm) Unverified() string {
	if !c.CollNet.Enabled {
		return ""
	}
	return "what NCCL " + c.Params.Rules.Version() + " does where the network reduces (CollNet) is taken from " +
		"its source alone: no decision of a machine with SHARP and no measurement was there to confirm it"
}
