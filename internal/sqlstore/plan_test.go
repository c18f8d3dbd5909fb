package sqlstore

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPlans: SQLite finds the rows of bulk statements by key. If it read whole tables, every verdict would take longer
// the longer the history is. The test looks at the query plans, because small tables are fast either way.
func TestPlans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.db")
	s, err := OpenSQLite(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}

	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()

	explain := func(name, text string, args []any) {
		t.Helper()
		rows, err := s.read.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
		if err := scanAll(rows, err, func(r *sql.Rows) error {
			var id, parent, unused int
			var detail string
			if err := r.Scan(&id, &parent, &unused, &detail); err != nil {
				return err
			}
			what, scan := strings.CutPrefix(detail, "SCAN ")
			if scan && what != "v" && !strings.Contains(what, "CONSTANT ROW") &&
				!strings.Contains(what, "INDEX attempts_open") && !strings.Contains(what, "INDEX attempts_waiting") && !strings.Contains(what, "INDEX jobs_open") {
				t.Errorf("%s: %s", name, detail)
			}
			if (name == "events" || name == "events of one") && strings.Contains(detail, "TEMP B-TREE") {
				t.Errorf("%s: all are read and sorted: %s", name, detail)
			}
			return nil
		}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}

	for name, b := range map[string]*bulk{"sessions": s.d.sessions, "dispatch": dispatchAttempts, "waiting": selectWaitingOf,
		"read sessions": readSessions, "open attempts of agents": selectOpenOf, "settle": settleAttempts, "journals": advanceJournals, "flags": flagProcesses,
		"removal":  removeProcesses,
		"returned": returnProcesses, "rejected": removeRejected, "refused": selectRefused, "refused items": refusedItems,
		"processes": selectProcesses, "groups": selectGroups, "keys": deleteTaskKeys, "tasks": deleteTaskRows,
		"task items": selectTaskItems, "task places": selectTaskPlaces, "task verdicts": s.d.taskVerdicts,
		"items": selectItems, "causes of events": selectCauses,
		"marks of events": selectEventMarks, "sources of events": selectSources, "sources of agents": selectSourcesOf,
		"unused sources": deleteUnused, "specs": selectSpecs, "services": selectServices,
		"removed sets": dropSets, "removed modules": dropModules,
		"removed services": dropServices, "removed numbers": dropNumbers,
		"job tasks": updateJobTasks, "removed jobs": deleteJobRows} {
		for _, rows := range chunks {
			explain(name, b.text(rows, s.d), make([]any, rows*len(b.types)))
		}
	}

	explain("finished", selectFinished, []any{1, 1})
	explain("attempts of a task", selectAttempts+ofTask, []any{1})
	explain("tasks of all", selectTasks, []any{1, 1})
	explain("tasks of an app", selectTasksOfApp, []any{"a", 1, 1})
	explain("tasks of a user", selectTasksOfUser, []any{"a", "u", 1, 1})
	explain("open attempts", selectAttempts+ofAll, nil)
	explain("open operations", selectOpenOps, nil)
	explain("open operations of a task", selectTasksOpen, []any{1})
	explain("agents on which attempts wait", selectWaitingAgents, nil)
	explain("ended jobs", selectEndedJobs, []any{1, 1})
	explain("open jobs", selectOpenJobs, nil)
	explain("counts of a job", countTasks, []any{1})
	explain("events", selectEvents+`e.id > $1 AND e.id <= $2 ORDER BY e.id DESC LIMIT $3`, []any{1, 2, 3})
	explain("events of many", selectEvents+`e.id > $1 AND e.id <= $2 AND +e.src IN (SELECT $3) ORDER BY e.id LIMIT $4`,
		[]any{1, 2, 3, 4})
	explain("events of one", selectEvents+`e.id > $1 AND e.id <= $2 AND e.src = $3 ORDER BY e.id LIMIT $4`,
		[]any{1, 2, 3, 4})
	explain("tasks of a job with definitions", `SELECT t.id, s.body`+fromDefinedTasks+
		` WHERE t.job = $1 ORDER BY t.id`, []any{1})
}

// TestRowsOfBytes: bytes are the same in the first row of a bulk statement, whose types are written, and in the others.
func TestRowsOfBytes(t *testing.T) {
	s, err := OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "record.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()

	given := []string{"12ab", "\x00\xff", ""}
	var got []string
	rows, err := s.read.db.QueryContext(t.Context(), withRows(`SELECT h FROM v`, "h BYTEA").text(len(given), s.d),
		[]byte(given[0]), []byte(given[1]), []byte(given[2]))
	if err := scanAll(rows, err, func(r *sql.Rows) error {
		var h []byte
		err := r.Scan(&h)
		got = append(got, string(h))
		return err
	}); err != nil || !slices.Equal(got, given) {
		t.Errorf("%q %v, want %q", got, err, given)
	}
}
