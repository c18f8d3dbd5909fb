package record

import (
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
