//go:build linux

package fleettest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// dashboard is what Grafana reads of a dashboard. Every key of the files is known here, so a misspelt one is found.
type dashboard struct {
	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Version       int      `json:"version"`
	Editable      bool     `json:"editable"`
	Timezone      string   `json:"timezone"`
	Refresh       string   `json:"refresh"`
	Time          struct{ From, To string }
	Templating    struct{ List []variable }
	Annotations   struct{ List []any }
	Panels        []panel
}

type variable struct {
	Name, Label, Type string
	Datasource        *dataSource
	Query             json.RawMessage
	Refresh, Sort     int
	IncludeAll, Multi bool
	AllValue          string
	Current           map[string]any
}

type dataSource struct{ Type, UID string }

type panel struct {
	ID          int
	Title, Type string
	Datasource  dataSource
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults  struct{ Unit string }
		Overrides []any
	}
	Options map[string]any
	Targets []struct {
		RefID, Expr, LegendFormat, Format string
		Instant, Range                    bool
		Datasource                        dataSource
	}
}

func dashboards(t *testing.T) (list []dashboard) {
	t.Helper()
	paths, err := filepath.Glob("../../examples/grafana/*.json")
	if err != nil || len(paths) != 3 {
		t.Fatalf("%d dashboards: %v", len(paths), err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		var x dashboard
		if err := d.Decode(&x); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		list = append(list, x)
	}
	return list
}

// TestDashboards: ids are unique, everything names the data source that people choose, variables exist, and panels do not
// overlap.
func TestDashboards(t *testing.T) {
	uids := map[string]bool{}
	for _, d := range dashboards(t) {
		if d.UID == "" || uids[d.UID] || d.Title == "" || d.SchemaVersion < 36 || len(d.Panels) == 0 {
			t.Errorf("%q: uid %q, schema %d, %d panels", d.Title, d.UID, d.SchemaVersion, len(d.Panels))
		}
		uids[d.UID] = true

		known := map[string]bool{}
		for _, v := range d.Templating.List {
			known[v.Name] = true
			if v.Type == "query" && (v.Datasource == nil || v.Datasource.UID != "${datasource}") {
				t.Errorf("%s: the variable %s names no data source", d.Title, v.Name)
			}
		}
		if !known["datasource"] || d.Templating.List[0].Type != "datasource" {
			t.Errorf("%s: people cannot choose the data source", d.Title)
		}

		ids, used := map[int]bool{}, map[[2]int]bool{}
		for _, p := range d.Panels {
			if p.ID == 0 || ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
				t.Errorf("%s: panel %d %q", d.Title, p.ID, p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if x >= 24 || used[[2]int{x, y}] {
						t.Fatalf("%s: panel %q does not fit at %d, %d", d.Title, p.Title, x, y)
					}
					used[[2]int{x, y}] = true
				}
			}
			refs := map[string]bool{}
			for _, q := range p.Targets {
				if q.Expr == "" || refs[q.RefID] || q.Datasource.UID != "${datasource}" || q.LegendFormat == "" {
					t.Errorf("%s: %q has a faulty query %q", d.Title, p.Title, q.RefID)
				}
				refs[q.RefID] = true
				for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
					if !known[v[1]] {
						t.Errorf("%s: %q uses the unknown variable %s", d.Title, p.Title, v[1])
					}
				}
			}
		}
	}
}
