#include "go_asm.h"
#include "textflag.h"

// func fetchGroup(of *Group)
TEXT ·fetchGroup(SB), NOSPLIT, $0-8
	MOVQ of+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	PREFETCHT0 128(AX)
	PREFETCHT0 192(AX)
	PREFETCHT0 256(AX)
	PREFETCHT0 Group_sized(AX)
	RET

// func fetchStream(of *Group)
TEXT ·fetchStream(SB), NOSPLIT, $0-8
	MOVQ of+0(FP), AX
	MOVQ (Group_cur+8)(AX), CX
	PREFETCHT0 (CX)
	PREFETCHT0 64(CX)
	PREFETCHT0 128(CX)
	PREFETCHT0 192(CX)
	RET

// func fetchConn(of *Conn)
TEXT ·fetchConn(SB), NOSPLIT, $0-8
	MOVQ of+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	PREFETCHT0 128(AX)
	PREFETCHT0 192(AX)
	RET
