package verbs

import (
	"encoding/binary"
	"structs"
)

// The structs below mirror rdma-core's infiniband/verbs.h on 64-bit Linux. TestLayout compares their sizes
// and offsets with those in C. Objects that are passed to C are outside the Go heap (see Arena).

type sge struct {
	_      structs.HostLayout
	addr   uint64
	length uint32
	lkey   uint32
}

// sendWR is struct ibv_send_wr with the rdma member of its union.
type sendWR struct {
	_          structs.HostLayout
	wrID       uint64
	next       uintptr
	sgList     uintptr
	numSGE     int32
	opcode     uint32
	flags      uint32
	imm        uint32 // network byte order
	remoteAddr uint64
	rkey       uint32
	_          [76]byte
}

type recvWR struct {
	_      structs.HostLayout
	wrID   uint64
	next   uintptr
	sgList uintptr
	numSGE int32
	_      int32
}

// WC is struct ibv_wc.
type WC struct {
	_         structs.HostLayout
	ID        uint64
	Status    uint32
	opcode    uint32
	vendorErr uint32
	byteLen   uint32
	imm       uint32 // network byte order
	QP        uint32
	srcQP     uint32
	flags     uint32
	_         [8]byte
}

// OK reports whether the request succeeded.
func (wc *WC) OK() bool { return wc.Status == statusSuccess }

// Arrived reports whether the completion is that of a receive which an RDMA write with immediate consumed.
func (wc *WC) Arrived() bool { return wc.opcode == wcRecvRDMAImm }

// Imm returns the message's immediate, in host byte order.
func (wc *WC) Imm() uint32 { return swap32(wc.imm) }

type qpCap struct {
	_                                                           structs.HostLayout
	maxSendWR, maxRecvWR, maxSendSGE, maxRecvSGE, maxInlineData uint32
}

type qpInitAttr struct {
	_         structs.HostLayout
	qpContext uintptr
	sendCQ    uintptr
	recvCQ    uintptr
	srq       uintptr
	cap       qpCap
	qpType    uint32
	sqSigAll  int32
	_         int32
}

type globalRoute struct {
	_            structs.HostLayout
	dgid         [16]byte
	flowLabel    uint32
	sgidIndex    uint8
	hopLimit     uint8
	trafficClass uint8
	_            uint8
}

type ahAttr struct {
	_           structs.HostLayout
	grh         globalRoute
	dlid        uint16
	sl          uint8
	srcPathBits uint8
	staticRate  uint8
	isGlobal    uint8
	portNum     uint8
	_           uint8
}

type qpAttr struct {
	_                structs.HostLayout
	state            uint32
	curState         uint32
	pathMTU          uint32
	pathMigState     uint32
	qkey             uint32
	rqPSN            uint32
	sqPSN            uint32
	destQPNum        uint32
	accessFlags      uint32
	cap              qpCap
	ah               ahAttr
	altAH            ahAttr
	pkeyIndex        uint16
	altPkeyIndex     uint16
	enSqdAsyncNotify uint8
	sqDraining       uint8
	maxRDAtomic      uint8
	maxDestRDAtomic  uint8
	minRNRTimer      uint8
	portNum          uint8
	timeout          uint8
	retryCnt         uint8
	rnrRetry         uint8
	altPortNum       uint8
	altTimeout       uint8
	_                uint8
	rateLimit        uint32
	_                uint32
}

type portAttr struct {
	_            structs.HostLayout
	state        uint32
	maxMTU       uint32
	activeMTU    uint32
	gidTblLen    int32
	portCapFlags uint32
	maxMsgSize   uint32
	badPkeyCntr  uint32
	qkeyViolCntr uint32
	pkeyTblLen   uint16
	lid          uint16
	smLID        uint16
	lmc          uint8
	maxVLNum     uint8
	smSL         uint8
	subnetTmout  uint8
	initReply    uint8
	activeWidth  uint8
	activeSpeed  uint8
	physState    uint8
	linkLayer    uint8
	flags        uint8
	capFlags2    uint16
	_            uint16
	// Older headers end here; newer libraries write the fields below (NCCL's own copy of the struct,
	// ibvcore.h:191).
	activeSpeedEx uint32
	_             [8]byte // room for future fields
}

// ECE is struct ibv_ece: extensions beyond the standard on which two NICs of a vendor agree.
type ECE struct {
	_                           structs.HostLayout `json:"-"`
	VendorID, Options, CompMask uint32
}

type deviceAttr struct {
	_            structs.HostLayout
	fwVer        [64]byte
	nodeGUID     uint64 // network byte order
	sysImageGUID uint64
	maxMRSize    uint64
	pageSizeCap  uint64
	vendorID     uint32
	vendorPartID uint32
	hwVer        uint32
	maxQP        int32
	maxQPWR      int32
	capFlags     uint32
	maxSGE       int32
	maxSGERD     int32
	maxCQ        int32
	maxCQE       int32
	maxMR        int32
	maxPD        int32
	maxQPRDAtom  int32
	_            [79]byte
	physPortCnt  uint8
	_            [4]byte
}

// Offsets in C's own structs that inline functions of verbs.h use.
const (
	offContextOps  = 8
	offAsyncFD     = 268
	offABICompat   = 320
	offPollCQ      = 88
	offPostSend    = 200
	offPostRecv    = 208
	offQPNum       = 52
	offMRLkey      = 36
	offMRRkey      = 40
	offEventType   = 8
	sizeAsyncEvent = 16
)

// struct verbs_context encloses the context if abi_compat has all bits set; it grew at its front, so its
// members have offsets before the context.
const (
	offExtSize       = -8
	offExtQueryPort  = -320
	extSizeQueryPort = 648
	sizePortAttr     = 56
)

// Numbers of verbs.h.
const (
	OpWrite    = 0
	OpWriteImm = 1
	OpSend     = 2
	OpRead     = 4

	qptRC = 2

	stInit = 1
	stRTR  = 2
	stRTS  = 3
	stErr  = 6

	sendSignaled = 2
	sendInline   = 8

	AccessLocalWrite   = 1
	AccessRemoteWrite  = 2
	AccessRemoteRead   = 4
	AccessRemoteAtomic = 8
	accessRelaxed      = 1 << 20

	maskState     = 1
	maskAccess    = 8
	maskPkey      = 16
	maskPort      = 32
	maskAV        = 128
	maskPathMTU   = 256
	maskTimeout   = 512
	maskRetryCnt  = 1024
	maskRNRRetry  = 2048
	maskRQPSN     = 4096
	maskMaxRD     = 8192
	maskMinRNR    = 32768
	maskSQPSN     = 65536
	maskMaxDestRD = 131072
	maskDestQPN   = 1048576
	portActive    = 4
	layerIB       = 1
	layerEthernet = 2
	wcRecvRDMAImm = 129
	statusSuccess = 0
)

func swap64(v uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return binary.BigEndian.Uint64(b[:])
}

func swap32(v uint32) uint32 {
	return v>>24 | v>>8&0xff00 | v<<8&0xff0000 | v<<24
}
