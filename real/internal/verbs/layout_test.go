package verbs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// layout lists the places that Go and C must agree on: name, what Go has, and
// how C says it.
var layout = []struct {
	name string
	got  uintptr
	c    string
}{
	{"send_wr", unsafe.Sizeof(sendWR{}), "sizeof(struct ibv_send_wr)"},
	{"send_wr.next", unsafe.Offsetof(sendWR{}.next), "offsetof(struct ibv_send_wr, next)"},
	{"send_wr.sg_list", unsafe.Offsetof(sendWR{}.sgList), "offsetof(struct ibv_send_wr, sg_list)"},
	{"send_wr.num_sge", unsafe.Offsetof(sendWR{}.numSGE), "offsetof(struct ibv_send_wr, num_sge)"},
	{"send_wr.opcode", unsafe.Offsetof(sendWR{}.opcode), "offsetof(struct ibv_send_wr, opcode)"},
	{"send_wr.send_flags", unsafe.Offsetof(sendWR{}.flags), "offsetof(struct ibv_send_wr, send_flags)"},
	{"send_wr.imm_data", unsafe.Offsetof(sendWR{}.imm), "offsetof(struct ibv_send_wr, imm_data)"},
	{"send_wr.remote_addr", unsafe.Offsetof(sendWR{}.remoteAddr),
		"offsetof(struct ibv_send_wr, wr.rdma.remote_addr)"},
	{"send_wr.rkey", unsafe.Offsetof(sendWR{}.rkey), "offsetof(struct ibv_send_wr, wr.rdma.rkey)"},
	{"recv_wr", unsafe.Sizeof(recvWR{}), "sizeof(struct ibv_recv_wr)"},
	{"recv_wr.sg_list", unsafe.Offsetof(recvWR{}.sgList), "offsetof(struct ibv_recv_wr, sg_list)"},
	{"recv_wr.num_sge", unsafe.Offsetof(recvWR{}.numSGE), "offsetof(struct ibv_recv_wr, num_sge)"},
	{"sge", unsafe.Sizeof(sge{}), "sizeof(struct ibv_sge)"},
	{"wc", unsafe.Sizeof(WC{}), "sizeof(struct ibv_wc)"},
	{"wc.status", unsafe.Offsetof(WC{}.Status), "offsetof(struct ibv_wc, status)"},
	{"wc.opcode", unsafe.Offsetof(WC{}.opcode), "offsetof(struct ibv_wc, opcode)"},
	{"wc.vendor_err", unsafe.Offsetof(WC{}.vendorErr), "offsetof(struct ibv_wc, vendor_err)"},
	{"wc.imm_data", unsafe.Offsetof(WC{}.imm), "offsetof(struct ibv_wc, imm_data)"},
	{"wc.qp_num", unsafe.Offsetof(WC{}.QP), "offsetof(struct ibv_wc, qp_num)"},
	{"qp_attr", unsafe.Sizeof(qpAttr{}), "sizeof(struct ibv_qp_attr)"},
	{"qp_attr.path_mtu", unsafe.Offsetof(qpAttr{}.pathMTU), "offsetof(struct ibv_qp_attr, path_mtu)"},
	{"qp_attr.dest_qp_num", unsafe.Offsetof(qpAttr{}.destQPNum), "offsetof(struct ibv_qp_attr, dest_qp_num)"},
	{"qp_attr.qp_access_flags", unsafe.Offsetof(qpAttr{}.accessFlags),
		"offsetof(struct ibv_qp_attr, qp_access_flags)"},
	{"qp_attr.ah_attr", unsafe.Offsetof(qpAttr{}.ah), "offsetof(struct ibv_qp_attr, ah_attr)"},
	{"qp_attr.pkey_index", unsafe.Offsetof(qpAttr{}.pkeyIndex), "offsetof(struct ibv_qp_attr, pkey_index)"},
	{"qp_attr.max_rd_atomic", unsafe.Offsetof(qpAttr{}.maxRDAtomic),
		"offsetof(struct ibv_qp_attr, max_rd_atomic)"},
	{"qp_attr.max_dest_rd_atomic", unsafe.Offsetof(qpAttr{}.maxDestRDAtomic),
		"offsetof(struct ibv_qp_attr, max_dest_rd_atomic)"},
	{"qp_attr.min_rnr_timer", unsafe.Offsetof(qpAttr{}.minRNRTimer),
		"offsetof(struct ibv_qp_attr, min_rnr_timer)"},
	{"qp_attr.port_num", unsafe.Offsetof(qpAttr{}.portNum), "offsetof(struct ibv_qp_attr, port_num)"},
	{"qp_attr.timeout", unsafe.Offsetof(qpAttr{}.timeout), "offsetof(struct ibv_qp_attr, timeout)"},
	{"qp_attr.retry_cnt", unsafe.Offsetof(qpAttr{}.retryCnt), "offsetof(struct ibv_qp_attr, retry_cnt)"},
	{"qp_attr.rnr_retry", unsafe.Offsetof(qpAttr{}.rnrRetry), "offsetof(struct ibv_qp_attr, rnr_retry)"},
	{"ah_attr", unsafe.Sizeof(ahAttr{}), "sizeof(struct ibv_ah_attr)"},
	{"ah_attr.dlid", unsafe.Offsetof(ahAttr{}.dlid), "offsetof(struct ibv_ah_attr, dlid)"},
	{"ah_attr.is_global", unsafe.Offsetof(ahAttr{}.isGlobal), "offsetof(struct ibv_ah_attr, is_global)"},
	{"ah_attr.port_num", unsafe.Offsetof(ahAttr{}.portNum), "offsetof(struct ibv_ah_attr, port_num)"},
	{"global_route.sgid_index", unsafe.Offsetof(globalRoute{}.sgidIndex),
		"offsetof(struct ibv_global_route, sgid_index)"},
	{"global_route.traffic_class", unsafe.Offsetof(globalRoute{}.trafficClass),
		"offsetof(struct ibv_global_route, traffic_class)"},
	{"qp_init_attr", unsafe.Sizeof(qpInitAttr{}), "sizeof(struct ibv_qp_init_attr)"},
	{"qp_init_attr.cap", unsafe.Offsetof(qpInitAttr{}.cap), "offsetof(struct ibv_qp_init_attr, cap)"},
	{"qp_init_attr.qp_type", unsafe.Offsetof(qpInitAttr{}.qpType),
		"offsetof(struct ibv_qp_init_attr, qp_type)"},
	{"port_attr.lid", unsafe.Offsetof(portAttr{}.lid), "offsetof(struct ibv_port_attr, lid)"},
	{"port_attr.active_mtu", unsafe.Offsetof(portAttr{}.activeMTU),
		"offsetof(struct ibv_port_attr, active_mtu)"},
	{"port_attr.gid_tbl_len", unsafe.Offsetof(portAttr{}.gidTblLen),
		"offsetof(struct ibv_port_attr, gid_tbl_len)"},
	{"port_attr.active_width", unsafe.Offsetof(portAttr{}.activeWidth),
		"offsetof(struct ibv_port_attr, active_width)"},
	{"port_attr.active_speed", unsafe.Offsetof(portAttr{}.activeSpeed),
		"offsetof(struct ibv_port_attr, active_speed)"},
	{"port_attr.link_layer", unsafe.Offsetof(portAttr{}.linkLayer),
		"offsetof(struct ibv_port_attr, link_layer)"},
	{"device_attr", unsafe.Sizeof(deviceAttr{}), "sizeof(struct ibv_device_attr)"},
	{"device_attr.node_guid", unsafe.Offsetof(deviceAttr{}.nodeGUID),
		"offsetof(struct ibv_device_attr, node_guid)"},
	{"device_attr.phys_port_cnt", unsafe.Offsetof(deviceAttr{}.physPortCnt),
		"offsetof(struct ibv_device_attr, phys_port_cnt)"},
	{"context.ops", offContextOps, "offsetof(struct ibv_context, ops)"},
	{"context.async_fd", offAsyncFD, "offsetof(struct ibv_context, async_fd)"},
	{"ops.poll_cq", offPollCQ, "offsetof(struct ibv_context_ops, poll_cq)"},
	{"ops.post_send", offPostSend, "offsetof(struct ibv_context_ops, post_send)"},
	{"ops.post_recv", offPostRecv, "offsetof(struct ibv_context_ops, post_recv)"},
	{"qp.qp_num", offQPNum, "offsetof(struct ibv_qp, qp_num)"},
	{"mr.lkey", offMRLkey, "offsetof(struct ibv_mr, lkey)"},
	{"mr.rkey", offMRRkey, "offsetof(struct ibv_mr, rkey)"},
	{"async_event", sizeAsyncEvent, "sizeof(struct ibv_async_event)"},
	{"async_event.event_type", offEventType, "offsetof(struct ibv_async_event, event_type)"},
	{"context.abi_compat", offABICompat, "offsetof(struct ibv_context, abi_compat)"},
	{"verbs_context.sz", uintptr(-offExtSize),
		"offsetof(struct verbs_context, context) - offsetof(struct verbs_context, sz)"},
	{"verbs_context.query_port", uintptr(-offExtQueryPort),
		"offsetof(struct verbs_context, context) - offsetof(struct verbs_context, query_port)"},
	{"verbs_context up to query_port", extSizeQueryPort,
		"sizeof(struct verbs_context) - offsetof(struct verbs_context, query_port)"},
	{"ece", unsafe.Sizeof(ECE{}), "sizeof(struct ibv_ece)"},
	{"ece.options", unsafe.Offsetof(ECE{}.Options), "offsetof(struct ibv_ece, options)"},
	{"device_attr.max_qp", unsafe.Offsetof(deviceAttr{}.maxQP), "offsetof(struct ibv_device_attr, max_qp)"},
	{"device_attr.max_cqe", unsafe.Offsetof(deviceAttr{}.maxCQE),
		"offsetof(struct ibv_device_attr, max_cqe)"},
	{"device_attr.sys_image_guid", unsafe.Offsetof(deviceAttr{}.sysImageGUID),
		"offsetof(struct ibv_device_attr, sys_image_guid)"},
	{"port_attr.active_speed_ex", unsafe.Offsetof(portAttr{}.activeSpeedEx),
		"offsetof(struct ibv_port_attr, port_cap_flags2) + 4"},
	{"REMOTE_ATOMIC", AccessRemoteAtomic, "IBV_ACCESS_REMOTE_ATOMIC"},
	{"EVENT_CQ_ERR", eventCQ, "IBV_EVENT_CQ_ERR"},
	{"EVENT_QP_FATAL", eventQPFatal, "IBV_EVENT_QP_FATAL"},
	{"EVENT_QP_REQ_ERR", eventQPReq, "IBV_EVENT_QP_REQ_ERR"},
	{"EVENT_QP_ACCESS_ERR", eventQPAccess, "IBV_EVENT_QP_ACCESS_ERR"},
	{"EVENT_DEVICE_FATAL", eventDevice, "IBV_EVENT_DEVICE_FATAL"},
	{"RTR mask AV", maskAV, "IBV_QP_AV"},
	{"mask MAX_DEST_RD_ATOMIC", maskMaxDestRD, "IBV_QP_MAX_DEST_RD_ATOMIC"},
	{"mask DEST_QPN", maskDestQPN, "IBV_QP_DEST_QPN"},
	{"WRITE_WITH_IMM", OpWriteImm, "IBV_WR_RDMA_WRITE_WITH_IMM"},
	{"READ", OpRead, "IBV_WR_RDMA_READ"},
	{"RECV_RDMA_WITH_IMM", wcRecvRDMAImm, "IBV_WC_RECV_RDMA_WITH_IMM"},
	{"RELAXED_ORDERING", accessRelaxed, "IBV_ACCESS_RELAXED_ORDERING"},
	{"SEND_INLINE", sendInline, "IBV_SEND_INLINE"},
}

// TestLayout asks the C compiler where rdma-core has it.
func TestLayout(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: cc")
	}
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		t.Skip("no infiniband/verbs.h: package libibverbs-dev")
	}
	var src strings.Builder
	src.WriteString("#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\n" +
		"int main(void) {\n")
	for _, l := range layout {
		src.WriteString("printf(\"%zu\\n\", (size_t)" + l.c + ");\n")
	}
	src.WriteString("return 0; }\n")
	dir := t.TempDir()
	file := filepath.Join(dir, "layout.c")
	if err := os.WriteFile(file, []byte(src.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-o", filepath.Join(dir, "layout"), file).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(dir, "layout")).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	for i, l := range layout {
		if want := lines[i]; want != uitoa(l.got) {
			t.Errorf("%s: Go has %d, C has %s", l.name, l.got, want)
		}
	}
}

func uitoa(v uintptr) string {
	if v == 0 {
		return "0"
	}
	var b []byte
	for ; v > 0; v /= 10 {
		b = append([]byte{byte('0' + v%10)}, b...)
	}
	return string(b)
}
