package backup

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
)

const (
	formatVersion = 1
	manifestName  = "manifest.json"

	maxManifest = 64 << 10
	maxRecord   = 1 << 40 // size of the record
	maxSecret   = 1 << 20 // size of any other file
)

// The files of a backup, by their names in the data folder. The authorities keep the names that their key files had in
// the folders of older programs: so an older program can restore a newer backup, and the other way round.
const (
	RecordFile    = "gozzard.db"
	SigningFile   = "signing.key"
	JoinFile      = "join.secret"
	authorityFile = enrol.CertificateFile // enrol.KeyFile in the data folder
	nextFile      = enrol.OldNextFile     // enrol.NextKeyFile in the data folder
)

// placeOf is the name that a file of a backup has in the data folder.
func placeOf(name string) string {
	switch name {
	case authorityFile:
		return enrol.KeyFile
	case nextFile:
		return enrol.NextKeyFile
	}
	return name
}

// known are all files that may be in a backup, in their order.
var known = []string{RecordFile, authorityFile, SigningFile, JoinFile, nextFile}

// Manifest describes the content of a backup.
type Manifest struct {
	Version int               `json:"version"`
	Taken   time.Time         `json:"taken"` // everything from before this time is in the backup
	Program string            `json:"program"`
	Files   []File            `json:"files"`
	Audit   gozzard.AuditHead `json:"audit"` // the newest row of the audit
	Epoch   uint64            `json:"epoch"` // of the signing key
}

// File is one file of a backup.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bytes is the size of all files together.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

func (m *Manifest) has(name string) bool {
	return slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == name })
}

// readManifest rejects unknown fields and files, because a restore would lose them.
func readManifest(r io.Reader) (m Manifest, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return m, err
	}
	if len(b) > maxManifest {
		return m, errors.New("its manifest is too large")
	}

	// Check the format first: the fields of another format are unknown.
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return m, fmt.Errorf("its manifest cannot be read: %w", err)
	}
	if head.Version != formatVersion {
		return m, fmt.Errorf("its format is %d, this program supports %d: use the program that wrote it or a newer one",
			head.Version, formatVersion)
	}

	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("its manifest cannot be read: %w", err)
	}

	return m, m.check()
}

// check rejects a manifest that Create would not write.
func (m *Manifest) check() error {
	if m.Taken.IsZero() || len(m.Program) > 100 || m.Epoch == 0 {
		return errors.New("its manifest is incomplete")
	}

	// The files must be known, in order, and of a sensible size.
	next := 0
	for _, f := range m.Files {
		at := slices.Index(known, f.Name)
		if at < next { // unknown, twice, or out of order
			return fmt.Errorf("its manifest names %.100q, which is not a file of a backup or is not in order", f.Name)
		}
		next = at + 1

		limit := int64(maxSecret)
		if f.Name == RecordFile {
			limit = maxRecord
		}
		if f.Size <= 0 || f.Size > limit {
			return fmt.Errorf("its manifest has an invalid size of %s: %d", f.Name, f.Size)
		}
		if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != 32 {
			return fmt.Errorf("its manifest has no checksum of %s", f.Name)
		}
	}

	// Two files are required.
	for _, name := range []string{RecordFile, SigningFile} {
		if !m.has(name) {
			return fmt.Errorf("it has no %s", name)
		}
	}

	return nil
}
