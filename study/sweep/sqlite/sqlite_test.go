package sqlite

import (
	"database/sql"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/study/sweep/table"
)

// TestWrite: what is written is read again, empty cells as NULL, also by Python's
// own SQLite where there is one.
func TestWrite(t *testing.T) {
	in := &table.Table{Rows: 2, About: [][2]string{{"a", "b"}}, Columns: []*table.Column{{Name: `te"xt`},
		{Name: "int", Kind: table.Int, Unit: "B"}, {Name: "float", Kind: table.Float}}}
	for _, row := range [][]any{{"µ", int64(1) << 60, 0.1}, {nil, nil, nil}} {
		for i, v := range row {
			in.Columns[i].Add(v)
		}
	}
	name := filepath.Join(t.TempDir(), "a b%?#.db")
	if err := Write(name, in); err != nil {
		t.Fatal(err)
	}
	if err := Write(name, in); err == nil {
		t.Error("a second database over the first")
	}
	db, err := sql.Open("sqlite", "file:"+escape(name))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n, i int64
	var s, unit string
	var f float64
	if err := db.QueryRow(`SELECT count(*), max("te""xt"), max(int), max(float) FROM results`).Scan(&n, &s,
		&i, &f); err != nil || n != 2 || s != "µ" || i != 1<<60 || f != 0.1 {
		t.Error(n, s, i, f, err)
	}
	if err := db.QueryRow(`SELECT unit FROM columns WHERE name = 'int'`).Scan(&unit); err != nil ||
		unit != "B" {
		t.Error(unit, err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to read the file with")
	}
	out, err := exec.Command(python, "-c", `import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute('select int, float from results where int is not null').fetchall())`, name).CombinedOutput()
	if strings.Contains(string(out), "No module named") {
		t.Skip("python3 has no sqlite3")
	}
	if err != nil || strings.TrimSpace(string(out)) != "[(1152921504606846976, 0.1)]" {
		t.Errorf("python: %s %v", out, err)
	}
}

// TestTooWide: what SQLite cannot hold is refused.
func TestTooWide(t *testing.T) {
	if err := Write(filepath.Join(t.TempDir(), "a.db"),
		&table.Table{Columns: make([]*table.Column, maxColumns+1)}); err == nil {
		t.Error("no error")
	}
	if err := Write(filepath.Join(t.TempDir(), "none", "a.db"),
		&table.Table{Columns: []*table.Column{{Name: "a"}}}); err == nil {
		t.Error("no error of a folder that is not there")
	}
}
