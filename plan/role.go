package plan

import "fmt"

// Role is the part of an algorithm that a program's thread group executes.
type Role uint8

// Roles.
const (
	RoleRing Role = iota
	RoleTreeReduce
	RoleTreeBroadcast
	RoleTreeRoot // reduces and broadcasts in one group
	RolePAT
	RoleScatter // NVLS, CollNetDirect: input to the heads' buffers
	RoleGather  // NVLS, CollNetDirect: heads' buffers to output
	// NVLS head: reduce through the switch (and broadcast at the top); CollNet head: reduce for the network
	RoleReduce
	RoleBroadcast
	RoleSend
	RoleRecv
	RoleCopy // to the rank itself, without a connection
	RoleChainReduce
	RoleChainBroadcast
	// RoleBlock is a thread block of a schedule other than NCCL's: its Channel is the number of the block on
	// its rank, and its connections have channels of their own.
	RoleBlock
)

var roleNames = [...]string{"ring", "tree-reduce", "tree-broadcast", "tree-root", "pat", "scatter", "gather",
	"reduce", "broadcast", "send", "recv", "copy", "chain-reduce", "chain-broadcast", "block"}

// String returns the role's word in plan text and traces.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("Role(%d)", uint8(r))
}

// VariesConns reports whether the ops of a program use different connections. In all other roles every op
// uses the same ones, though the first and the last op may lack some.
func (r Role) VariesConns() bool {
	return r == RolePAT || r == RoleScatter || r == RoleGather || r == RoleBlock
}
