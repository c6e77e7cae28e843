// Package topoxml reads and writes NCCL's topology file (NCCL_TOPO_FILE,
// NCCL_TOPO_DUMP_FILE) as a topo.Spec, and reads the elements of its other XML file,
// the graphs (search/graphxml). It is a pure codec: bytes in, values out, no files and
// no rules of what the values lead to.
//
// Every complaint carries file, line and column. What NCCL's own small parser
// (xml.cc) would refuse or read otherwise than XML says is a warning of the
// Spec, because the file is still good for this program.
package topoxml
