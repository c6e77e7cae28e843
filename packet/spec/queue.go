package spec

// Queue is a queue pair of a Live run: messages of Src for Dst, one after the
// other.
type Queue struct {
	Src, Dst int32
	Priority uint8 // 1 to 7
	// Path is the cables from Src to Dst; acknowledgements go back over them.
	// Where Config.Routing lets frames choose, only their number counts.
	Path []int32
	// Limit is the most that the host feeds it with, in bit/s on the wire; 0: as
	// fast as its port.
	Limit int64
}
