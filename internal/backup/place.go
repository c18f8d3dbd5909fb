package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozzard/gozzard/internal/atomicfile"
)

// placeFile says in a data folder that the record is in a database elsewhere.
const placeFile = "record.json"

// maxPlace bounds the file.
const maxPlace = 64 << 10

// Place is where the record of a data folder is, when it is not in the folder.
type Place struct {
	Installation string `json:"installation"` // the id that the record has, too
	Database     string `json:"database"`     // its address without secrets, for people

	// Mark is that of a transaction that the server has seen in the record, the last one or one shortly before it. A record
	// with an older mark of the same writer was set back.
	Mark   int64  `json:"mark,omitempty"`
	Writer string `json:"writer,omitempty"`

	// Restored is the newest mark of a restore that the server has seen in the record. A record with a newer one was set back
	// on purpose, and prepared for that.
	Restored int64 `json:"restored,omitempty"`
}

// ReadPlace reads where the record of a data folder is. It is zero when the record is in the folder.
func ReadPlace(data string) (p Place, err error) {
	path := filepath.Join(data, placeFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil && len(b) > maxPlace {
		err = fmt.Errorf("it has %d bytes, which is too much", len(b))
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err == nil && p.Installation == "" {
		err = errors.New("it names no installation")
	}
	if err != nil {
		return Place{}, fmt.Errorf("cannot read %s, which says where the record is: %w", path, err)
	}
	return p, nil
}

// Write puts the place into a data folder.
func (p Place) Write(data string) error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(data, placeFile), append(b, '\n'))
}

// CheckHere returns an error when the record of a data folder is elsewhere: what reads its file cannot be done.
func CheckHere(data string) error {
	p, err := ReadPlace(data)
	if err != nil || p.Installation == "" {
		return err
	}
	return fmt.Errorf("the record of %s is in the database %s, not in this folder: see \"A record in PostgreSQL\" in "+
		"docs/backup-and-restore.md", data, p.Database)
}

// ForgetPlace says that the record is in the data folder again.
func ForgetPlace(data string) error { return os.Remove(filepath.Join(data, placeFile)) }
