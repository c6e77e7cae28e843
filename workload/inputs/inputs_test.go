package inputs

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
)

const (
	topology = `<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel">
    <pci busid="0000:17:00.0" class="0x030200"><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>
  </cpu>
</system>
`
	matrix = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" +
		"GPU0\t X \tNV12\tPXB\t0-31\t0\t\tN/A\nGPU1\tNV12\t X \tSYS\t32-63\t1\t\tN/A\n" +
		"NIC0\tPXB\tSYS\t X \t\t\t\t\n"
	log = `node0:101:101 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
node0:101:101 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
node0:101:140 [0] NCCL INFO comm 0x5581 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 17000 commId 0xd1 - Init START
`
	system = `node0:101:140 [0] NCCL INFO === System : maxBw 20.0 totalBw 20.0 ===
node0:101:140 [0] NCCL INFO CPU/0-0 (1/1/3)
node0:101:140 [0] NCCL INFO + PCI[24.0] - GPU/0-17000 (0)
node0:101:140 [0] NCCL INFO ==========================================
`
	table1 = `#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    45.10   23.25   40.69      0    44.90   23.35   40.87      0
`
	rccl = `node0:7:7 [0] NCCL INFO ROCr version 1.14
RCCL version : 2.21.5-HEAD:0123456
HIP version  : 6.3.42134
node0:7:9 [1] NCCL INFO comm 0x257e rank 1 nranks 2 cudaDev 1 busId 23000 commId 0x94 - Init START
`
)

// texts are samples of what may have other lines around it.
var texts = []struct {
	kind Kind
	text string
}{
	{Matrix, matrix},
	{NCCLLog, log},
	{NCCLLog, log + system},
	{TestTable, table1},
	{RCCLLog, rccl},
	{RCCLTable, "#   Rank  0 Pid   2421 on  host0 device  0 [0000:83:00.0] AMD Instinct MI300X\n" + table1},
	{RocmSMI, "=========== ROCm System Management Interface ===========\n" +
		"=========== Link Type between two GPUs ===========\n       GPU0  GPU1\nGPU0   0     XGMI\n" +
		"GPU1   XGMI  0\n"},
	{P2PMatrix, " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n\nLegend:\n\n  X    = Self\n" +
		"  OK   = Status Ok\n  CNS  = Chipset not supported\n"},
}

// documents are samples that are a file each.
var documents = []struct {
	kind Kind
	text string
}{
	{Topology, topology},
	{Topology, "<?xml version=\"1.0\"?>\n<!-- of node 7 -->\n" + topology},
	{TopologyHosts, strings.Replace(topology, "</system>",
		`<cpu numaid="1" host_hash="0x2"/><cpu numaid="2" host_hash="0x1"/></system>`, 1)},
	{Template, "<!--\n A vendor's file; <gpu> is added by NCCL.\n-->\n<system version=\"1\">\n" +
		"<cpu numaid=\"0\"><pci busid=\"0001:00:00.0\" class=\"0x030200\"/></cpu>\n</system>\n"},
	{AMDTopology,
		`<system version="2"><cpu numaid="0"><pci busid="0000:0c:00.0"><gpu dev="0" sm="304" gcn="gfx942" arch="38911"/></pci></cpu></system>`},
	{AMDTopology,
		`<system version="1"><cpu numaid="0"><pci busid="0000:0c:00.0"><gpu dev="0"><xgmi target="0000:0d:00.0" count="1" tclass="0x038000"/></gpu></pci></cpu></system>`},
	{Graphs, `<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1"/></graphs>`},
	{Lstopo,
		`<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0"><object type="Machine" os_index="0"/></topology>`},
	{MSCCL, `<algo name="ring" nchunksperloop="2" nchannels="1" proto="Simple" ngpus="2" coll="allreduce"><gpu id="0"/></algo>`},
	{SmiXML,
		`<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"><nvidia_smi_log><attached_gpus>8</attached_gpus></nvidia_smi_log>`},
	{MachineSpec,
		`{"name":"mine","cpu":"genoa","gpu":{"kind":"l40s"},"numa":[{"id":0}],"groups":[{"numa":0,"gpus":2}]}`},
	{Fabric,
		`{"name":"net","switches":[{"name":"leaf0"}],"cables":[{"a":"node0/0","b":"leaf0","gbit":400}]}`},
	{MachineClass, `{"format":"simccl machine class","name":"x","parameters":{}}`},
	{NetworkClass, `{"format":"simccl network class","name":"x","parameters":{}}`},
	{Scenario, `{"scenario":1,"workload":{"op":"all_reduce"}}`},
	{Sweep, "sweep: 1\nname: a\nbase: {workload: {op: all_reduce}}\ngrid:\n  gpus: [2, 4]\n"},
	{Sweep, `{"sweep":1,"base":{"workload":{"op":"all_reduce"}},"grid":{"gpus":[2,4]}}`},
	{SweepResults, `{"key":"abc","point":{"gpus":2},"result":{"time_us":1}}`},
	{TestJSON,
		`{"version":1,"start_time":"2026-01-01","nccl_version":22809,"config":{},"results":[{"size":8}]}`},
	{Decision, `{"nNodes":2,"gpusPerNode":8,"nRanks":16,"topoXml":"<system/>"}`},
	{Kineto, `{"schemaVersion":1,"deviceProperties":[{"id":0}],"traceEvents":[]}`},
	{ChromeTrace, `{"traceEvents":[{"ph":"X","ts":0,"dur":1,"name":"a","pid":0,"tid":0}]}`},
	{ChromeTrace, `[{"ph":"X","ts":0,"dur":1,"name":"a","pid":0,"tid":0}]`},
	{TorchET, `{"schema":"1.1.1-chakra.0.0.4","pid":1,"nodes":[]}`},
	{ChakraGroups, `{"0": [0, 1], "1": [2, 3]}`},
	{FlightJSON, `{"version":"2.9","comm_lib_version":"2.28.9","entries":[]}`},
	{Meta, `{"mode":"ddp","world":4,"env":{"NCCL_DEBUG":"INFO"}}`},
	{StepTimes, `{"mode":"ddp","variants":{"plain":[1,2]}}`},
	{Calls, `{"simccl":"calls","version":1}` + "\n"},
	{MSCCLPlus, `{"name":"a","collective":"allreduce","gpus":[{"id":0,"threadblocks":[]}]}`},
	{HFConfig, `{"architectures":["LlamaForCausalLM"],"hidden_size":4096,"num_hidden_layers":32}`},
	{Native, "workload 1\nranks 2\n"},
	{GOAL, "num_ranks 2\nrank 0 {\n}\n"},
	{AICB, "comm_type,comm_group,comm_group_size,msg_size,stage\n"},
	{SimAI, "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8\n1\nlayer -1 1 NONE 0\n"},
	{NS3Config, "ENABLE_QCN 1\nTOPOLOGY_FILE topo.txt\nFLOW_FILE flow.txt\nCC_MODE 1\n"},
	{NS3Network, "3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 100Gbps 1000ns 0\n"},
	{NS3Flows, "1\n0 1 3 100 1000000 2.0\n"},
	{HTSimMatrix, "Nodes 4\nConnections 1\n0->1 id 1 start 0 size 1000\n"},
	{HTSimNetwork, "Nodes 4\nTiers 2\nPodsize 2\n"},
	{Tuner, "# collective,min,max,algorithm,protocol,channels,nodes,ranks,pipe,reg\nallreduce,0,65536," +
		"tree,ll,2,1,8,-1,-1\n"},
	{Settings, "# /etc/nccl.conf\nNCCL_IB_HCA=mlx5_0\nNCCL_DEBUG=WARN\n"},
	{Overlap, "# torch\n\n## solo: us an operation\nop bytes group n gated_us graph_us\n" +
		"all_reduce 65536 def 40 11.36 20.07\n"},
	{Groups, "GROUP 0 mode plain tasks 1\nTASK 0 AllReduce count 1 type 7 op 0 root 0 shift 1 comm world\n"},
	{OperationTimes, "op,us\nqkv,12.5\n"},
	{SlurmTopology, "# topology\nSwitchName=leaf0 Nodes=node[0-7]\nSwitchName=spine0 Switches=leaf[0-1]\n"},
	{SlurmTopology, "BlockName=b0 Nodes=node[0-7]\nBlockSizes=8\n"},
	{SlurmYAML, "---\n- topology: t\n  tree:\n    switches:\n      - switch: s\n        nodes: n[0-3]\n"},
	{LLDP, `{"lldp":{"interface":[{"eth0":{"chassis":{"leaf0":{}},"port":{"id":{"type":"ifname","value":"swp1"}}}}]}}`},
	{LLDP, `{"node1":{"lldp":[{"interface":[{"name":"eth0","chassis":[],"port":[]}]}]}}`},
	{CableTable, "# cables\nsource device,source port,dest device,dest port,speed\nn1,eth0,leaf0,1,400\n"},
	{HostList, "node[01-16],login1\n"},
	{HostList, "gpu1 slots=8\ngpu2 slots=8\n"},
	{KubernetesNodes,
		`{"apiVersion":"v1","kind":"List","items":[{"kind":"Node","metadata":{"name":"gpu1"},"status":{"nodeInfo":{}}}]}`},
	{IBNetDiscover, "#\n# Topology file: generated on Mon Jan  " +
		"5\n#\nvendid=0x2c9\ndevid=0xd2f0\nswitchguid=0xb8599f0300fc6de4(b8599f0300fc6de4)\n" +
		"Switch\t40 \"S-b8\"\n"},
}

// wraps are what files are saved in.
var wraps = map[string]func(string) []byte{
	"plain": func(s string) []byte { return []byte(s) },
	"gzip": func(s string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(s))
		_ = z.Close()
		return b.Bytes()
	},
	"zstd": func(s string) []byte {
		z, _ := zstd.NewWriter(nil)
		return z.EncodeAll([]byte(s), nil)
	},
	"CRLF":            func(s string) []byte { return []byte(strings.ReplaceAll(s, "\n", "\r\n")) },
	"byte order mark": func(s string) []byte { return []byte("\ufeff" + s) },
	"UTF-16": func(s string) []byte {
		b := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return b
	},
}

// pastes are what texts are found in.
var pastes = map[string]func(string) string{
	"prompt and fence": func(s string) string {
		return "What I see:\n```\n$ cat it\n" + s + "```\nThanks!\n"
	},
	"quote": func(s string) string {
		return each(s, func(_ int, l string) string { return "> " + l })
	},
	"tags of mpirun": func(s string) string {
		return each(s, func(_ int, l string) string { return "[1,0]<stdout>:" + l })
	},
	"srun -l": func(s string) string {
		return each(s, func(_ int, l string) string { return "0: " + l })
	},
	"pods": func(s string) string {
		return each(s, func(_ int, l string) string { return "[pod/train-0/main] " + l })
	},
	"grep -n": func(s string) string {
		return each(s, func(i int, l string) string { return fmt.Sprintf("%d:%s", i+1, l) })
	},
	"Docker": func(s string) string {
		return each(s, func(_ int, l string) string {
			text, _ := json.Marshal(map[string]string{"log": l + "\n", "stream": "stdout",
				"time": "2026-01-01T00:00:00Z"})
			return string(text)
		})
	},
	"HTML entities": html.EscapeString,
	"a page": func(s string) string {
		return "<html><body><pre>\n" + html.EscapeString(s) + "</pre></body></html>\n"
	},
	"a report": func(s string) string {
		return "Python: 3.12\nPyTorch: 2.9\nNIC Legend follows\n\n" + s + "\nulimit soft: 1048576\n"
	},
	"colours": func(s string) string { return "\x1b[4m" + s + "\x1b[0m" },
}

func each(s string, f func(int, string) string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i := range lines {
		lines[i] = f(i, lines[i])
	}
	return strings.Join(lines, "\n") + "\n"
}

// A content is recognised whatever it was saved, compressed, pasted or logged in.
func TestKindsInEveryEnvelope(t *testing.T) {
	for _, s := range slices.Concat(texts, documents) {
		for name, wrap := range wraps {
			if v := Of(wrap(s.text)); v.Kind() != s.kind {
				t.Errorf("%s in %s is %s (%s), want %s", s.text[:min(40, len(s.text))], name, v.Kind(),
					v.Note, s.kind)
			}
		}
	}
	for _, s := range texts {
		for name, paste := range pastes {
			if v := Of([]byte(paste(s.text))); v.Kind() != s.kind {
				t.Errorf("%s in %s is %s (%s), want %s:\n%s", s.kind, name, v.Kind(), v.Note, s.kind,
					paste(s.text))
			}
		}
	}
}

// A file of several kinds is of all of them, what it mainly is first.
func TestSeveralKinds(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Kind
	}{
		{table1 + "node0:1:1 [0] NCCL INFO Channel 00/02 : 0 1\n" + "# Avg bus bandwidth : 40.7\n",
			[]Kind{TestTable, NCCLLog}},
		{log + system + table1, []Kind{NCCLLog, SystemPrint, TestTable}},
		{log + "node0:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1\n",
			[]Kind{NCCLLog, NCCLCalls}},
		{matrix + "\n\n" + log, []Kind{NCCLLog, Matrix}},
	} {
		v := Of([]byte(c.text))
		var got []Kind
		for _, f := range v.Found {
			got = append(got, f.Kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.text[:30], got, c.want)
		}
	}
}

// Prose about logs is no log; of what is not known it is said what it begins with.
func TestUnknownSaysWhatIsKnown(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "it is empty",
		"hello\nworld\n":             `text that begins with "hello"`,
		"set NCCL INFO lines aside":  "text that begins with",
		`{"a":1,"b":[{"c":2}]}`:      "JSON with the members a, b",
		"<project><x/></project>":    "XML with the outermost element <project>",
		"\x00\x01\x02\x03\xff\xfe12": "binary data that begins with the bytes 00 01 02 03",
	} {
		v := Of([]byte(text))
		if v.Kind() != Unknown || !strings.Contains(v.Note, want) {
			t.Errorf("%q is %s: %q, want %q", text, v.Kind(), v.Note, want)
		}
	}
}

// A refusal names the place, what the file is, and who takes it or why none does.
func TestRefusalsNameTheKind(t *testing.T) {
	for _, c := range []struct {
		text, want string
		kinds      []Kind
	}{
		{"\n" + table1, "f:3:1: this is an nccl-tests table; simccl report --measured reads it", Machines()},
		{documents[4].text,
			"f:1:1: this is a topology file of AMD GPUs (RCCL); simccl inspect --json --topo reads it",
			Machines()},
		{rccl, "f:1:25: this is a log of AMD's RCCL; simccl check --log", []Kind{NCCLLog}},
		{topology, "f:1:1: this is an NCCL topology file; simccl topo convert reads it", []Kind{Scenario}},
	} {
		err := Want([]byte(c.text), "f", c.kinds...)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := Want([]byte("what is this"), "f", Fabric); err != nil {
		t.Errorf("what is not known is left to its reader: %v", err)
	}
}

// Places are those of the file, also where the text was taken out of something.
func TestPlacesAreThoseOfTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		text      string
		line, col int
	}{
		"comments before": {"<!-- a\n b -->\n  " + topology, 3, 3},
		"a quote":         {pastes["quote"]("said:\n\n" + topology), 3, 3},
		"a paste":         {"$ cat /tmp/topo.xml\n" + topology, 2, 1},
	} {
		v := Of([]byte(c.text))
		if v.Kind() != Topology || v.Found[0].Line != c.line || v.Found[0].Col != c.col {
			t.Errorf("%s: %+v", name, v.Found)
			continue
		}
		want := strings.Count(c.text[:strings.Index(c.text, "<gpu")], "\n")
		if x := string(v.XML()); strings.Count(x[:strings.Index(x, "<gpu")], "\n") != want ||
			strings.Contains(x, ">  <cpu") || strings.Contains(x, "\n> ") {
			t.Errorf("%s: <gpu> is not in line %d of\n%s", name, want+1, x)
		}
	}
}

// Every kind has a word of its own, and either commands or a hint what to do.
func TestTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for k := range numKinds {
		r := k.row()
		if r.name == "" || r.what == "" || seen[r.name] || k != Unknown && len(r.commands) == 0 &&
			r.hint == "" {
			t.Errorf("kind %d: %+v", k, r)
		}
		seen[r.name] = true
	}
}

// FuzzOf: nothing panics, places lie in the text, and a content is accepted where its own
// kind is wanted.
func FuzzOf(f *testing.F) {
	for _, s := range slices.Concat(texts, documents) {
		f.Add([]byte(s.text))
		f.Add(wraps["gzip"](s.text))
	}
	for _, paste := range pastes {
		f.Add([]byte(paste(matrix)))
	}
	f.Add([]byte("\x80\x02}q\x00."))
	f.Add([]byte("<!--"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := Of(data)
		for _, x := range v.Found {
			if x.Line < 1 || x.Col < 1 || x.at > len(v.Text) || x.Kind == Unknown {
				t.Fatalf("%+v", x)
			}
			if err := Want(data, "f", x.Kind); err != nil {
				t.Fatal(err)
			}
		}
		if len(v.Found) == 0 && v.Note == "" {
			t.Fatal("nothing is said")
		}
		v.XML()
		_, _ = Take(data, "f", 1<<10, Fabric)
	})
}
