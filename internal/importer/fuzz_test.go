package importer_test

import (
	"reflect"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/gozzard/gozzard/internal/importer"
	"github.com/gozzard/gozzard/test/fuzztest"
)

type read func([]importer.File, importer.World) (*importer.Result, error)

// fuzz feeds changed configurations to an importer. What it returns can be registered, and its YAML is the same document.
func fuzz(f *testing.F, name string, from read, seeds ...string) {
	z := fuzztest.New(f)
	for _, s := range seeds {
		z.Add([]byte(s))
	}
	z.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 64<<10 {
			return
		}
		r, err := from([]importer.File{{Name: name, Text: in}}, disk(map[string]string{"/etc/default/web": "A=1", "/x/.env": "PORT=1"}))
		if err != nil {
			if r != nil {
				t.Error("an error with a result")
			}
			return
		}
		for i := range r.Processes {
			sameAsYAML(t, &r.Processes[i])
		}
	})
}

// sameAsYAML compares a document with what a reader of YAML sees in its text.
func sameAsYAML(t *testing.T, p *importer.Process) {
	text := importer.WriteYAML([]importer.Process{*p})
	want, err := p.Document().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := yaml.Unmarshal(want, &a); err != nil {
		return // the library does not read this JSON either
	}
	if err := yaml.Unmarshal(text, &b); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%v\n%s\n%s", err, text, want)
	}
}

func FuzzSupervisord(f *testing.F) {
	fuzz(f, "/x/s.conf", importer.Supervisord, supervisordMain, supervisordWeb)
}

func FuzzPM2(f *testing.F) { fuzz(f, "/x/e.json", importer.PM2, ecosystem, jlist) }

func FuzzSystemd(f *testing.F) { fuzz(f, "/x/a.service", importer.Systemd, webUnit, dbUnit) }

func FuzzTimer(f *testing.F) {
	fuzz(f, "/x/a.timer", func(files []importer.File, w importer.World) (*importer.Result, error) {
		return importer.Systemd(append(files, importer.File{Name: "/x/a.service", Text: []byte("[Service]\nExecStart=/bin/a\n")}), w)
	}, "[Timer]\nOnCalendar=Mon..Fri *-*-* 09:00/15:00 UTC\nPersistent=yes\n")
}

func FuzzProcfile(f *testing.F) {
	fuzz(f, "/x/Procfile", importer.Procfile, "web: A=\"b c\" python3 -m http.server $PORT\nclock: cd x && ./y\n")
}

func FuzzProcinfo(f *testing.F) {
	fuzz(f, "/x/p.json", importer.Procinfo, `{"proc":[{"procName":"a","setupPath":"/x","valuekey":"n:a","startCmd":"./a 'b c'","type":1,"cpulmt":1.5}]}`)
}
