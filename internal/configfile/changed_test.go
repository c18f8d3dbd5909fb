package configfile_test

import (
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const oneProcess = `
biz: 2
name: shop
sets:
  - {id: 5, name: s, env: 3, modules: [{id: 21, name: web, instances: [{id: 1, name: s1, host: {ip: 127.0.0.1, cloud: 0}, processes: [
      {id: 41, name: nginx, user: shop, work_path: /data, pid_file: /run/a.pid, start_cmd: ./start.sh, stop_cmd: ./stop.sh}]}]}]}
`

// TestChangedFiles: what a release replaces follows from the code and the digest that an agent reports. What an agent of an earlier
// version or a damaged one reports does not lead to a second attempt, so what a person wrote stays.
func TestChangedFiles(t *testing.T) {
	t.Parallel()
	now := func(o gozzard.Outcome) gozzard.Outcome { return o }
	earlier := func(o gozzard.Outcome) gozzard.Outcome {
		o.File = gozzard.FileResult{}
		return o
	}
	for name, c := range map[string]struct {
		content string // of the host before the second release; "": the file is gone
		say     func(gozzard.Outcome) gozzard.Outcome
		force   bool
		want    string // of the host after it
		writes  int
		says    string
	}{
		"as released":            {"first\n", now, false, "second\n", 1, ""},
		"other ends of lines":    {"first\r\n", now, false, "second\n", 2, ""},
		"gone":                   {"", now, false, "second\n", 2, ""},
		"by hand":                {"by hand\n", now, false, "by hand\n", 1, "--force"},
		"by hand, forced":        {"by hand\n", now, true, "second\n", 1, ""},
		"earlier, as released":   {"first\n", earlier, false, "second\n", 1, ""},
		"earlier, by hand":       {"by hand\n", earlier, false, "by hand\n", 1, "has changed on the host"},
		"earlier, ends of lines": {"first\r\n", earlier, false, "first\r\n", 1, "has changed on the host"},
		"earlier, gone":          {"", earlier, false, "", 1, "does not exist"},
		"earlier, forced":        {"by hand\n", earlier, true, "second\n", 1, ""},
		"no digest": {"by hand\n", func(o gozzard.Outcome) gozzard.Outcome {
			if o.File.Code == gozzard.FileChanged {
				o.File.SHA256 = ""
			}
			return o
		}, false, "by hand\n", 1, "--force"},
		"an unknown code": {"by hand\n", func(o gozzard.Outcome) gozzard.Outcome {
			o.File.Code = "odd"
			return o
		}, false, "by hand\n", 1, "has changed on the host"},
		"a text that looks like it": {"first\r\n", func(o gozzard.Outcome) gozzard.Outcome {
			o.File = gozzard.FileResult{}
			o.Message += " has changed on the host: its sha256 is " + gozzard.FileDigest([]byte("first\n")) + ","
			return o
		}, false, "first\r\n", 1, "has changed on the host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hosts{say: now}
			r := newRig(t, newPlane(t, oneProcess), h)
			for _, w := range []record.JobWork{record.WorkGenerate, record.WorkRelease} {
				if got := r.work(w, record.ConfigChoice{Expect: true}); got.State != record.JobSucceeded {
					t.Fatalf("%s: %+v", w, got)
				}
			}
			r.apply("second\n")
			r.work(record.WorkGenerate, record.ConfigChoice{})

			h.content, h.exists, h.say, h.writes = c.content, c.content != "", c.say, nil
			got := r.work(record.WorkRelease, record.ConfigChoice{Expect: !c.force})
			if h.content != c.want || len(h.writes) != c.writes {
				t.Errorf("the host has %q after %d writes, want %q after %d", h.content, len(h.writes), c.want, c.writes)
			}
			if ok := got.State == record.JobSucceeded; ok != (c.want == "second\n") || !strings.Contains(got.Message, c.says) {
				t.Errorf("the task is %s and says %q, want %q", got.State, got.Message, c.says)
			}
		})
	}
}
