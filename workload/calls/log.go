package calls

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/simccl/simccl/coll"
)

// logNames are the names of calls in NCCL's log (2.28.9, collectives.cc).
var logNames = map[coll.Func]string{coll.AllReduce: "AllReduce", coll.AllGather: "AllGather",
	coll.ReduceScatter: "ReduceScatter", coll.Broadcast: "Broadcast",
	coll.Reduce: "Reduce", coll.AllToAll: "AlltoAll", coll.Gather: "Gather", coll.Scatter: "Scatter",
	coll.Send: "Send", coll.Recv: "Recv"}

// WriteLog writes the calls in the format of NCCL's log with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL.
// Pointers other than communicators' are 0; process and device have the rank's number.
func (r *Record) WriteLog(to io.Writer) error {
	w := bufio.NewWriter(to)
	var err error
	line := func(rank int, format string, args ...any) {
		_, e := fmt.Fprintf(w, "virtual:%d:%d [%d] NCCL INFO "+format+"\n",
			append([]any{rank + 1, rank + 1, rank}, args...)...)
		err = errors.Join(err, e)
	}
	for i := range r.Comms {
		for rank, gpu := range r.Comms[i].Ranks {
			line(int(gpu), "ncclCommInitRank comm 0x%x rank %d nranks %d cudaDev %d nvmlDev %d busId %x "+
				"commId 0x%x - Init COMPLETE",
				pointer(i), rank, len(r.Comms[i].Ranks), gpu, gpu, (gpu+1)<<12, i+1)
		}
	}
	for rank, list := range r.Events {
		count := make([]int, len(r.Comms))
		for k := range list {
			e := &list[k]
			if e.Kind != Call {
				continue
			}
			line(rank, "%s: opCount %x sendbuff (nil) recvbuff (nil) count %d datatype %d op %d root %d "+
				"comm 0x%x [nranks=%d] stream 0x%x",
				logNames[e.Func], count[e.Comm], e.Count, e.Type, e.Op, e.Root, pointer(e.Comm),
				len(r.Comms[e.Comm].Ranks), e.Stream)
			count[e.Comm]++
		}
	}
	return errors.Join(err, w.Flush())
}

// pointer returns the address that the log shows for a communicator.
func pointer(comm int) int { return 0x10000 * (comm + 1) }
