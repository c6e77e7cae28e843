// Package sqlite writes a table as a database of SQLite: the table results, a
// table columns with types and units, and a table about.
//
// What it must not know: where a table comes from, and the file that it ends up as.
package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/simccl/simccl/study/sweep/table"
	_ "modernc.org/sqlite" // the driver
)

// maxColumns is SQLite's own limit (SQLITE_MAX_COLUMN).
const maxColumns = 2000

// Write creates a database file, which must not exist. Errors are those of SQLite.
func Write(name string, t *table.Table) (err error) {
	if len(t.Columns) > maxColumns {
		return fmt.Errorf("%d columns; a database has at most %d", len(t.Columns), maxColumns)
	}
	db, err := sql.Open("sqlite", "file:"+escape(name)+"?_pragma=journal_mode(off)&_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if err := fill(tx, t); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// escape quotes a path for a URI (sqlite.org/uri.html).
func escape(name string) string {
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(name)
}

func fill(tx *sql.Tx, t *table.Table) error {
	var columns []string
	for _, c := range t.Columns {
		columns = append(columns, quote(c.Name)+" "+[...]string{table.Text: "TEXT", table.Int: "INTEGER",
			table.Float: "REAL"}[c.Kind])
	}
	for _, q := range []string{"CREATE TABLE results (" + strings.Join(columns, ", ") + ")",
		"CREATE TABLE columns (name TEXT, type TEXT, unit TEXT)",
		"CREATE TABLE about (name TEXT, value TEXT)"} {
		if _, err := tx.Exec(q); err != nil {
			return err
		}
	}
	for _, c := range t.Columns {
		if _, err := tx.Exec("INSERT INTO columns VALUES (?, ?, ?)", c.Name, c.Kind.String(), c.Unit); err !=
			nil {
			return err
		}
	}
	for _, a := range t.About {
		if _, err := tx.Exec("INSERT INTO about VALUES (?, ?)", a[0], a[1]); err != nil {
			return err
		}
	}
	return rows(tx, t)
}

func rows(tx *sql.Tx, t *table.Table) error {
	add, err := tx.Prepare("INSERT INTO results VALUES (?" + strings.Repeat(", ?", len(t.Columns)-1) + ")")
	if err != nil {
		return err
	}
	defer add.Close()
	row := make([]any, len(t.Columns))
	for i := range t.Rows {
		for k, c := range t.Columns {
			row[k] = c.At(i)
		}
		if _, err := add.Exec(row...); err != nil {
			return err
		}
	}
	return nil
}

// quote quotes an SQL identifier.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
