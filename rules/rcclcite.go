package rules

import "fmt"

// Places of RCCL alone, after those of NCCL.
const (
	AtPATWindow    = numPlaces + iota // sizes, by nodes
	AtLL128Model                      // a machine model with LL128
	AtLL128AllXGMI                    // XGMI between all GPUs
	AtTreeAlone                       // no Tree by Simple on one node
	AtRanges                          // protocols by the share of a rank, between nodes
	AtAloneLL                         // LL on one node
	AtAloneTree                       // Tree by LL on one node
	AtPivot                           // AllReduce with rings for pivots
	AtTreeDefined                     // AllReduce with trees of a model
	AtWindows                         // channels by the share of a rank
	AtDirect                          // AllGather by sends to all
	AtDirectRS                        // ReduceScatter by sends to all
	AtHierarchy                       // AllGather over nodes, then within them
	AtDDA                             // kernels that read all GPUs' memory
	AtPreset                          // machines that are known before a search
	AtOverride                        // RCCL_OVERRIDE_ALGO and RCCL_OVERRIDE_PROTO
	AtFactor                          // what a size leaves of a bandwidth

	endPlaces
)

// citeRCCL is Cite for RCCL: "graph/tuning.cc:774 of RCCL 2.30.4".
func (r *Ruleset) citeRCCL(p Place) string {
	c, ok := rcclCitations()[p]
	if !ok {
		return ""
	}
	line := c.lines[1]
	if r.Release == (Release{2, 28, 3}) {
		line = c.lines[0]
	}
	if line == absent {
		return ""
	}
	return fmt.Sprintf("%s:%d of %s", c.file, line, r.Name())
}

// rcclCitations are the lines of 2.28.3 of January 2026 and of 2.30.4 of July 2026.
func rcclCitations() map[Place]citation {
	const wrap, collectives = "rccl_wrap.cc", "collectives.cc"
	at := func(file string, old, now uint16) citation { return citation{file, []uint16{old, now}} }
	return map[Place]citation{
		AtBroadcastRing: at(tuningCC, 653, 774), AtReduceRing: at(tuningCC, 653, 774),
		AtGatherAlgos: at(tuningCC, 654, 775), AtScatterAlgos: at(tuningCC, 654, 775),
		AtPATAllReduce: at(tuningCC, 657, 778), AtPATSimple: at(tuningCC, 663, 784),
		AtTreeAlone: at(tuningCC, 660, 781), AtPATEnable: at(tuningCC, 558, 665),
		AtPATNodes:   at(tuningCC, 562, 669),
		AtPATAverage: at(enqueueCC, 2082, 2321), AtPATWindow: at(enqueueCC, absent, 2326),
		AtAlgoList: at(tuningCC, 896, 1031), AtProtoList: at(tuningCC, 895, 1030),
		AtLL128PXB: at(tuningCC, 872, 1003), AtLL128NVLink: at(tuningCC, 872, 1003),
		AtLL128Model: at(tuningCC, 873, 1004), AtLL128SM: at(tuningCC, 873, 998),
		AtLL128AllXGMI: at(enqueueCC, 2085, 2347), AtNoGraph: at(initCC, 1469, 1626),
		AtRanges: at(wrap, 107, 112), AtAloneLL: at(wrap, 96, 92), AtAloneTree: at(enqueueCC, 2313, 2600),
		AtPivot: at(enqueueCC, 2220, 2504), AtTreeDefined: at(enqueueCC, 2242, 2526),
		AtWindows: at(wrap, 173, 177), AtDirect: at(wrap, 408, 517), AtDirectRS: at(wrap, absent, 573),
		AtHierarchy: at(wrap, absent, 502), AtDDA: at(collectives, absent, 134), AtPreset: at(searchCC, 1092,
			1163),
		AtOverride: at(wrap, 223, 233), AtFactor: at(tuningCC, 995, 1130),
	}
}
