package spec

// Queue is a queue pair of a Live run, which carries messages from Src to Dst one after the other.
type Queue struct {
	Src, Dst int32
	Priority uint8 // 1 to 7
	// Path is the cables from Src to Dst; acknowledgements go back over them.
	// Where Config.Routing lets frames choose, only their number counts.
	Path []int32
	// Limit bounds the rate at which the host feeds it, in bit/s on the wire; 0: its port's.
	Limit int64
}
