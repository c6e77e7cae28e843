// Package topoxml reads and writes NCCL's topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE) as a topo.Spec,
// and reads the elements of its other XML file, the graphs (search/graphxml). It is a pure codec: bytes in,
// values out, no files and no rules about the values' effects.
//
// Every problem has file, line and column. Input that NCCL's own small parser (xml.cc) would reject, or read
// differently from XML, is a warning of the Spec, because this program can still use the file.
package topoxml
