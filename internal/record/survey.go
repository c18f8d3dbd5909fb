package record

import (
	"fmt"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
)

// Survey is what a record has in it.
type Survey struct {
	Schema     int64             `json:"schema"`
	Hosts      int               `json:"hosts"`
	Members    map[string]int    `json:"members,omitempty"` // by state
	Processes  int               `json:"processes"`
	Tasks      int               `json:"tasks"`
	Open       int               `json:"open"` // attempts without a verdict
	Apps       int               `json:"apps"`
	Users      int               `json:"users"`
	Businesses int               `json:"businesses"`
	AuditRows  int               `json:"audit_rows"`
	Audit      gozzard.AuditHead `json:"audit"`
	// when the backup was taken from which this record was restored; zero once the restore is confirmed
	Restored time.Time `json:"restored,omitzero"`
	LastTask time.Time `json:"last_task,omitzero"`
	Journal  string    `json:"-"` // how SQLite keeps its log
}

// PageCheck is the result of comparing the pages of a record with their checksums.
type PageCheck struct {
	Pages      int
	Damaged    []uint32 // numbers of the pages that changed without the server
	Tables     []string // tables and indexes of these pages, as far as they can be found out
	LogDamaged bool     // the write-ahead log is damaged
}

// Sound reports whether nothing is damaged.
func (c *PageCheck) Sound() bool { return len(c.Damaged) == 0 && !c.LogDamaged }

// String says what is damaged.
func (c *PageCheck) String() string {
	var parts []string
	if n := len(c.Damaged); n > 0 {
		text := fmt.Sprintf("%d of %d pages are damaged", n, c.Pages)
		if len(c.Tables) > 0 {
			text = fmt.Sprintf("%d of %d pages are damaged (%s)", n, c.Pages, strings.Join(c.Tables, ", "))
		}
		parts = append(parts, text)
	}
	if c.LogDamaged {
		parts = append(parts, "the write-ahead log is damaged")
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case c.Pages == 1:
		return "1 page fits its checksum"
	}
	return fmt.Sprintf("%d pages fit their checksums", c.Pages)
}
