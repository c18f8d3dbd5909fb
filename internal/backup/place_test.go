package backup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/backup"
)

// A folder says where its record is. A damaged note is an error, not a record in the folder.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	if p, err := backup.ReadPlace(dir); p != (backup.Place{}) || err != nil || backup.CheckHere(dir) != nil {
		t.Errorf("an empty folder: %+v, %v", p, err)
	}

	want := backup.Place{Installation: "x1", Database: "postgres://db/g"}
	if err := want.Write(dir); err != nil {
		t.Fatal(err)
	}
	if p, err := backup.ReadPlace(dir); p != want || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if err := backup.CheckHere(dir); err == nil || !strings.Contains(err.Error(), want.Database) {
		t.Errorf("CheckHere: %v", err)
	}

	for _, text := range []string{"", "{", `{"database":"x"}`, strings.Repeat(" ", 1<<17)} {
		if err := os.WriteFile(filepath.Join(dir, "record.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.ReadPlace(dir); err == nil {
			t.Errorf("%.20q is accepted", text)
		}
	}
}
