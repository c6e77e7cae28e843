package require

import (
	"os"
	"testing"
)

// MPIEnv lets an mpirun run as root, with a session folder of its own. The common one,
// /tmp/ompi.HOST.UID, is made by the first run that finds none: where two start at once,
// the other fails with "mkdir: File exists" (Open MPI 4.1, orte/util/session_dir.c). Its path
// is short, as it is part of a socket's.
func MPIEnv(t testing.TB) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mpi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_orte_tmpdir_base=" + dir, "PRTE_MCA_prte_tmpdir_base=" + dir} // versions 4 and 5
}
