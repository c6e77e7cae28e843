package rules

import "fmt"

// Place is a condition in NCCL's source that switches an algorithm, a protocol or a path
// off, or that an input must meet. Cite says where a release has it.
type Place uint8

// Places, by what they decide. The zero Place is none.
const (
	AtNone Place = iota
	// Which algorithms and protocols NCCL has.
	AtBroadcastRing       // Broadcast by Ring alone
	AtReduceRing          // Reduce by Ring alone
	AtGatherAlgos         // algorithms of AllGather
	AtScatterAlgos        // algorithms of ReduceScatter
	AtPATAllReduce        // no AllReduce by PAT
	AtNVLSSimple          // NVLS and NVLSTree with Simple alone
	AtPATSimple           // PAT with Simple alone
	AtCollNetDirectSimple // CollNetDirect with Simple alone
	AtCollNetChainSimple  // CollNetChain with Simple alone
	// What PAT asks for.
	AtPATSM      // a compute capability
	AtPATEnable  // NCCL_PAT_ENABLE
	AtPATNodes   // one rank a node
	AtPATOffload // a network without device offload
	AtPATAverage // no average
	// What NVLS asks for.
	AtNVLSChannels    // channels of its graph
	AtNVLSReduces     // multicast, and what the switch reduces
	AtNVLSGatherRanks // ranks of a node that gather
	AtNVLSGatherNodes // one node that gathers
	AtNVLSTreeNodes   // nodes that NVLSTree joins
	AtNVLSSwitch      // an NVSwitch and sm_90
	AtNVLSTry         // bandwidth between each GPU and the switch
	AtNVLSEnable      // NCCL_NVLS_ENABLE, and GPUs of a node
	AtNVLSMulticast   // multicast of the driver
	// What CollNet asks for.
	AtCollNetPlugin       // a plugin that reduces
	AtCollNetChainGraph   // a graph of the chain
	AtCollNetNodes        // NCCL_COLLNET_NODE_THRESHOLD
	AtCollNetRanks        // ranks of a node
	AtCollNetReduces      // what the plugin reduces
	AtCollNetGathers      // a plugin that gathers
	AtCollNetScatters     // a plugin that scatters
	AtGatherHeads         // heads for an AllGather
	AtScatterHeads        // heads for a ReduceScatter
	AtCollNetDirectRanks  // ranks of a node for CollNetDirect
	AtCollNetChainRanks   // ranks of a node for CollNetChain
	AtCollNetDirectSwitch // an NVSwitch
	AtCollNetChainHeads   // chains that begin at a head
	// What switches algorithms and protocols off.
	AtAlgoList     // NCCL_ALGO
	AtProtoList    // NCCL_PROTO
	AtNoGraph      // a search that finds nothing
	AtLL128PXN     // LL128 up to PXN between nodes
	AtLL128PXB     // LL128 up to PXB between nodes
	AtLL128NVLink  // LL128 over NVLink within a node
	AtLL128EqualSM // LL128 of equal GPUs
	AtLL128SM      // compute capabilities with LL128
	// Who may use a path.
	AtP2PLevel      // NCCL_P2P_LEVEL
	AtNetFaster     // a NIC that is faster
	AtSHMDisable    // NCCL_SHM_DISABLE
	AtSHMHost       // one host
	AtPXNDisable    // NCCL_PXN_DISABLE
	AtPXNNet        // the path from the owner of the NIC to it
	AtPXNNVLink     // NVLink to the owner
	AtPXNHost       // the host of the owner
	AtPXNWider      // a wider path by the owner
	AtPXNGDR        // GPUDirect RDMA of the owner
	AtGDRNet        // a NIC with GPUDirect RDMA
	AtGDRGPU        // a GPU with GPUDirect RDMA
	AtGDRRead       // NCCL_NET_GDR_READ
	AtGDRReadNVLink // reads before sm_80
	AtGDRLevel      // NCCL_NET_GDR_LEVEL
	// What else is explained.
	AtSplitHost     // GPUs of a host that make a node
	AtPeerMinimum   // channels of send/recv as the least of a node's own GPUs
	AtOneRank       // a communicator of one rank
	AtOneRankCopy   // its copy
	AtOneRankKernel // its kernel

	// What an input must have.
	AtManyNodes     // nodes of a kind
	AtManyLinks     // links of a node
	AtPCIClass      // class of a PCI device
	AtPCIWidth      // its width
	AtPCISpeed      // its speed
	AtCPUArch       // architecture of a CPU
	AtCPUVendor     // its vendor
	AtCPUFamily     // its family and model
	AtPortWidth     // width of a virtual NIC's port
	AtPortCPUs      // one CPU of a virtual NIC's ports
	AtGPUParts      // parts of a GPU
	AtTrim          // what is left out of a topology
	AtReverse       // a link back, of a path
	AtGPUCPU        // a CPU near a GPU
	AtRelayGPU      // a GPU that relays
	AtReverseBW     // a link back, of a search
	AtCollNetDepth  // steps of CollNetDirect
	AtOneRankFloat8 // 8-bit floats of one rank

	numPlaces
)

// Cite is the file, below src/, and the line of the release that have a condition,
// "graph/tuning.cc:280 of 2.28.9". It is "" where the release lacks the condition, and of
// RCCL's where its line is not listed.
func (r *Ruleset) Cite(p Place) string {
	if r.Library == RCCL {
		return r.citeRCCL(p)
	}
	if p == AtNone || p >= numPlaces {
		return ""
	}
	c := &citations[p]
	for i, e := range table() {
		if e.Release == r.Release && c.lines[i] != absent {
			return fmt.Sprintf("%s:%d of %s", c.file, c.lines[i], r.Release)
		}
	}
	return ""
}

// Aside is Cite's text as it follows words, " (graph/tuning.cc:280 of 2.28.9)"; "" where that is.
func (r *Ruleset) Aside(p Place) string {
	if r == nil {
		return ""
	}
	if s := r.Cite(p); s != "" {
		return " (" + s + ")"
	}
	return ""
}

// citation is where the releases have a condition.
type citation struct {
	file  string
	lines []uint16 // of each release of table, in its order
}

// absent is the line of a condition that a release lacks.
const absent = 0

// Files with conditions, below src/.
const (
	connectCC = "graph/connect.cc"
	enqueueCC = "enqueue.cc"
	initCC    = "init.cc"
	nvlsCC    = "transport/nvls.cc"
	oneRankCU = "device/onerank.cu"
	pathsCC   = "graph/paths.cc"
	searchCC  = "graph/search.cc"
	shmCC     = "transport/shm.cc"
	topoCC    = "graph/topo.cc"
	tuningCC  = "graph/tuning.cc"
	xmlCC     = "graph/xml.cc"
)

// citations are the lines of the tags v2.21.5-1 to v2.30.7-1.
var citations = [numPlaces]citation{
	AtBroadcastRing: {tuningCC, []uint16{166, 164, 170, 233, 238, 239, 239, 255, 255, 255, 273, 273,
		273, 273, 274, 281, 294}},
	AtReduceRing: {tuningCC, []uint16{167, 165, 170, 233, 238, 239, 239, 255, 255, 255, 273, 273, 273,
		273, 274, 281, 294}},
	AtGatherAlgos: {tuningCC, []uint16{169, 167, 171, 234, 239, 240, 240, 256, 256, 256, 274, 274,
		274, 274, 275, 282, 295}},
	AtScatterAlgos: {tuningCC, []uint16{168, 166, 171, 234, 239, 240, 240, 256, 256, 256, 274, 274,
		274, 274, 275, 282, 295}},
	AtPATAllReduce: {tuningCC, []uint16{absent, absent, 174, 237, 242, 243, 243, 259, 259, 259, 277,
		277, 277, 277, 278, 285, 298}},
	AtNVLSSimple: {tuningCC, []uint16{172, 170, 177, 240, 245, 246, 246, 262, 262, 262, 280, 280, 280,
		280, 281, 288, 301}},
	AtPATSimple: {tuningCC, []uint16{absent, absent, 179, 242, 247, 248, 248, 264, 264, 264, 282, 282,
		282, 282, 283, 290, 302}},
	AtCollNetDirectSimple: {tuningCC, []uint16{186, 184, 194, 257, 262, 263, 263, 286, 286, 286, 311,
		311, 311, 311, 312, 319, 338}},
	AtCollNetChainSimple: {tuningCC, []uint16{187, 185, 195, 258, 263, 264, 264, 287, 287, 287, 312,
		312, 312, 312, 313, 320, 339}},
	AtPATSM: {tuningCC, []uint16{absent, absent, absent, absent, absent, 180, 180, 194, 194, 194, 204,
		204, 204, 204, 205, 212, 218}},
	AtPATEnable: {tuningCC, []uint16{absent, absent, 111, 175, 180, 181, 181, 195, 195, 195, 205, 205,
		205, 205, 206, 213, 219}},
	AtPATNodes: {tuningCC, []uint16{absent, absent, 112, 176, 181, 182, 182, 196, 196, 196, 206, 206,
		206, 206, 207, 214, 220}},
	AtPATOffload: {tuningCC, []uint16{absent, absent, 113, 177, 182, 183, 183, 197, 197, 197, 207,
		207, 207, 207, 208, 215, 221}},
	AtPATAverage: {enqueueCC, []uint16{absent, absent, 1799, 1602, 1612, 1674, 1691, 1774, 1774, 1771,
		1788, 1805, 1805, 1912, 1917, 1923, 2010}},
	AtNVLSChannels: {tuningCC, []uint16{absent, absent, absent, absent, absent, absent, absent,
		absent, absent, absent, 288, 288, 288, 288, 289, 296, 309}},
	AtNVLSReduces: {enqueueCC, []uint16{773, 437, 585, 346, 356, 353, 354, 394, 394, 391, 367, 384,
		384, 416, 421, 422, 425}},
	AtNVLSGatherRanks: {enqueueCC, []uint16{absent, absent, absent, absent, 1610, 1672, 1689, 1771,
		1771, 1768, 1785, 1802, 1802, 1909, 1914, 1920, 2004}},
	AtNVLSGatherNodes: {enqueueCC, []uint16{1505, 1560, 1797, 1600, 1610, 1672, 1689, absent, absent,
		absent, absent, absent, absent, absent, absent, absent, absent}},
	AtNVLSTreeNodes: {tuningCC, []uint16{284, 282, 303, 406, 411, 412, 412, 443, 443, 443, 466, 466,
		466, 466, 467, 474, 502}},
	AtNVLSSwitch: {searchCC, []uint16{893, 952, 973, 973, 990, 973, 973, 962, 1012, 1012, 1012, 1036,
		1036, 1062, 1063, 1072, 1124}},
	AtNVLSTry: {searchCC, []uint16{340, 386, 389, 389, 389, 389, 389, 389, 389, 389, 389, 389, 389,
		389, 390, 391, 414}},
	AtNVLSEnable: {nvlsCC, []uint16{241, 147, 154, 155, 157, 157, 157, 160, 160, 160, 160, 161, 161,
		161, 162, 247, 262}},
	AtNVLSMulticast: {nvlsCC, []uint16{252, 158, 165, 166, 168, 168, 168, 171, 171, 171, 171, 172,
		172, 172, 173, 258, 273}},
	AtCollNetPlugin: {initCC, []uint16{1033, 833, 878, 880, 820, 822, 832, 838, 838, 838, 910, 1006,
		1006, 1048, 1080, 1116, 1165}},
	AtCollNetChainGraph: {initCC, []uint16{1178, 1017, 1062, 1064, 1004, 1007, 1017, 1017, 1017, 1017,
		1093, 1189, 1189, 1240, 1272, 1407, 1452}},
	AtCollNetNodes: {initCC, []uint16{1191, 1030, 1075, 1077, 1017, 1020, 1030, 1030, 1030, 1030,
		1106, 1202, 1202, 1253, 1285, 1424, 1471}},
	AtCollNetRanks: {initCC, []uint16{1197, 1036, absent, absent, absent, absent, absent, absent,
		absent, absent, absent, absent, absent, absent, absent, absent, absent}},
	AtCollNetReduces: {enqueueCC, []uint16{1475, 1525, 1760, 1564, 1574, 1636, 1653, 1738, 1738, 1735,
		1750, 1767, 1767, 1874, 1879, 1885, 1971}},
	AtCollNetGathers: {tuningCC, []uint16{194, 192, 202, 265, 270, 271, 271, 303, 303, 303, 328, 328,
		328, 328, 329, 336, 356}},
	AtCollNetScatters: {tuningCC, []uint16{197, 195, 205, 268, 273, 274, 274, 304, 304, 304, 329, 329,
		329, 329, 330, 337, 360}},
	AtGatherHeads: {tuningCC, []uint16{194, 192, 202, 265, 270, 271, 271, 312, 312, 312, 337, 337,
		337, 337, 338, 345, 368}},
	AtScatterHeads: {tuningCC, []uint16{197, 195, 205, 268, 273, 274, 274, 312, 312, 312, 337, 337,
		337, 337, 338, 345, 368}},
	AtCollNetDirectRanks: {enqueueCC, []uint16{absent, absent, 1793, 1596, 1606, 1668, 1685, 1770,
		1770, 1767, 1782, 1799, 1799, 1906, 1911, 1917, 2001}},
	AtCollNetChainRanks: {enqueueCC, []uint16{absent, absent, absent, absent, absent, absent, absent,
		absent, absent, absent, 1784, 1801, 1801, 1908, 1913, 1919, 2003}},
	AtCollNetDirectSwitch: {tuningCC, []uint16{300, 298, 319, 413, 418, 419, 419, 450, 450, 450, 473,
		473, 473, 473, 474, 481, 509}},
	AtCollNetChainHeads: {tuningCC, []uint16{absent, absent, absent, absent, absent, absent, absent,
		absent, absent, absent, absent, absent, absent, absent, absent, absent, 507}},
	AtAlgoList: {tuningCC, []uint16{278, 276, 297, 364, 369, 370, 370, 401, 401, 401, 424, 424, 424,
		424, 425, 432, 458}},
	AtProtoList: {tuningCC, []uint16{273, 271, 292, 359, 364, 365, 365, 396, 396, 396, 419, 419, 419,
		419, 420, 427, 453}},
	AtNoGraph: {searchCC, []uint16{860, 919, 940, 940, 945, 928, 928, 917, 967, 967, 967, 991, 991,
		1014, 1015, 1023, 1074}},
	AtLL128PXN: {tuningCC, []uint16{308, 306, 327, 423, 428, 429, 429, 460, 461, 461, 484, 484, 484,
		484, 485, 492, 522}},
	AtLL128PXB: {tuningCC, []uint16{308, 306, 327, 423, 428, 429, 429, 460, 464, 464, 487, 487, 487,
		487, 488, 495, 525}},
	AtLL128NVLink: {tuningCC, []uint16{309, 307, 328, 424, 429, 430, 430, 461, 468, 468, 491, 491,
		491, 491, 492, 499, 531}},
	AtLL128EqualSM: {tuningCC, []uint16{310, 308, 329, 425, 430, 431, 431, 462, 469, 469, 492, 492,
		492, 492, 493, 501, 533}},
	AtLL128SM: {tuningCC, []uint16{311, 309, 330, 426, 431, 432, 432, 463, 470, 470, 493, 493, 493,
		493, 494, 502, 534}},
	AtP2PLevel: {pathsCC, []uint16{302, 304, 295, 315, 315, 315, 315, 319, 326, 326, 326, 330, 330,
		330, 334, 349, 368}},
	AtNetFaster: {pathsCC, []uint16{465, 467, 458, 504, 504, 527, 527, 532, 539, 539, 543, 562, 562,
		562, 566, 594, 628}},
	AtSHMDisable: {shmCC, []uint16{54, 55, 78, 78, 78, 79, 79, 79, 79, 79, 79, 79, 79, 80, 81, 81,
		66}},
	AtSHMHost: {shmCC, []uint16{62, 63, 86, 86, 86, 87, 87, 87, 87, 87, 87, 87, 87, 88, 89, 89, 74}},
	AtPXNDisable: {pathsCC, []uint16{607, 609, 600, 647, 647, 670, 670, 691, 698, 698, 702, 721, 721,
		728, 737, 778, 819}},
	AtPXNNet: {pathsCC, []uint16{614, 616, 607, 654, 654, 677, 677, 699, 707, 707, 711, 730, 730, 737,
		746, 789, 830}},
	AtPXNNVLink: {pathsCC, []uint16{615, 617, 608, 655, 655, 678, 678, 703, 709, 709, 713, 732, 732,
		739, 748, 791, 832}},
	AtPXNHost: {pathsCC, []uint16{616, 618, 609, 656, 656, 679, 679, 705, 711, 711, 715, 734, 734,
		741, 750, 793, 834}},
	AtPXNWider: {pathsCC, []uint16{617, 619, 610, 657, 657, 680, 680, 707, 713, 713, 717, 736, 736,
		743, 752, 795, 836}},
	AtPXNGDR: {pathsCC, []uint16{absent, absent, absent, absent, absent, absent, absent, absent,
		absent, absent, absent, absent, absent, absent, absent, 789, 830}},
	AtGDRNet: {pathsCC, []uint16{377, 379, 370, 391, 391, 394, 394, 399, 406, 406, 410, 429, 429, 432,
		436, 457, 485}},
	AtGDRGPU: {pathsCC, []uint16{378, 380, 371, 392, 392, 395, 395, 400, 407, 407, 411, 430, 430, 433,
		437, 458, 486}},
	AtGDRRead: {pathsCC, []uint16{382, 384, 375, 396, 396, 399, 399, 404, 411, 411, 415, 434, 434,
		437, 441, 462, 492}},
	AtGDRReadNVLink: {pathsCC, []uint16{396, 398, 389, 410, 410, 413, 413, 418, 425, 425, 429, 448,
		448, 451, 455, 476, 506}},
	AtGDRLevel: {pathsCC, []uint16{413, 415, 406, 427, 427, 439, 439, 442, 449, 449, 453, 472, 472,
		470, 474, 497, 528}},
	AtSplitHost: {pathsCC, []uint16{653, 655, 648, 695, 695, 718, 718, 744, 756, 756, 760, 779, 779,
		786, 795, 838, 880}},
	AtPeerMinimum: {pathsCC, []uint16{758, 755, 749, 796, 796, 819, 819, 845, 857, 857, 860, 876, 876,
		absent, absent, absent, absent}},
	AtOneRank: {enqueueCC, []uint16{1961, 1993, 2265, 2137, 2147, 2216, 2233, 2349, 2349, 2346, 2552,
		2569, 2569, 2908, 2908, 2943, 3039}},
	AtOneRankCopy: {oneRankCU, []uint16{52, 52, 52, 52, 52, 52, 52, 52, 52, 52, 52, 52, 52, 52, 53,
		53, 54}},
	AtOneRankKernel: {oneRankCU, []uint16{16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 17,
		17, 16}},
	AtManyNodes: {topoCC, []uint16{103, 109, 109, 109, 109, 114, 114, 112, 112, 112, 114, 114,
		114, 115, 101, 105, 103}},
	AtManyLinks: {topoCC, []uint16{163, 164, 164, 164, 164, 169, 169, 167, 167, 167, 169, 169,
		169, 170, 156, 173, 174}},
	AtPCIClass: {topoCC, []uint16{401, 404, 410, 411, 411, 416, 416, 416, 416, 416, 418, 431,
		431, 442, 454, 502, 642}},
	AtPCIWidth: {topoCC, []uint16{452, 457, 463, 464, 464, 469, 469, 469, 469, 469, 471, 484,
		484, 495, 507, 572, 652}},
	AtPCISpeed: {topoCC, []uint16{453, 458, 464, 465, 465, 470, 470, 470, 470, 470, 472, 485,
		485, 496, 508, 573, 653}},
	AtCPUArch: {topoCC, []uint16{493, 498, 504, 505, 505, 510, 510, 510, 510, 510, 512, 525,
		525, 536, 548, 613, 739}},
	AtCPUVendor: {topoCC, []uint16{496, 501, 507, 508, 508, 513, 513, 513, 513, 513, 515, 528,
		528, 539, 551, 616, 742}},
	AtCPUFamily: {topoCC, []uint16{500, 505, 511, 512, 512, 517, 517, 517, 517, 517, 519, 532,
		532, 543, 555, 620, 746}},
	AtPortWidth: {topoCC, []uint16{absent, absent, absent, absent, absent, absent, absent,
		absent, absent, absent, 1166, 1180, 1180, 1191, 1203, 1280, 1466}},
	AtPortCPUs: {topoCC, []uint16{absent, absent, absent, absent, absent, absent, absent,
		absent, absent, absent, absent, absent, absent, absent, absent, absent, 1565}},
	AtGPUParts: {topoCC, []uint16{absent, absent, absent, absent, absent, absent, absent,
		absent, absent, absent, absent, absent, absent, absent, absent, absent, 590}},
	AtTrim: {xmlCC, []uint16{927, 955, 958, 964, 964, 964, 964, 978, 978, 978, 980, 975,
		975, 975, 977, 996, 1188}},
	AtReverse: {pathsCC, []uint16{79, 81, 81, 81, 81, 81, 81, 81, 81, 81, 81, 81, 81, 81, 82, 88, 107}},
	AtGPUCPU: {pathsCC, []uint16{168, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170, 170,
		170, 170, 174, 180, 191}},
	AtRelayGPU: {pathsCC, []uint16{485, 487, 478, 524, 524, 547, 547, 552, 559, 559, 563, 582,
		582, 582, 586, 622, 657}},
	AtReverseBW: {searchCC, []uint16{62, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 73, 73, 74}},
	AtCollNetDepth: {connectCC, []uint16{227, 230, 232, 232, 231, 231, 231, 231, 231, 231, 232,
		232, 232, 232, 233, 233, 238}},
	AtOneRankFloat8: {oneRankCU, []uint16{absent, absent, absent, 65, 65, 65, 65, 65, 65, 65, 65,
		65, 65, 65, 66, 66, 79}},
}
