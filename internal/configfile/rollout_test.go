package configfile_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/configfile"
	"github.com/gozzard/gozzard/internal/record"
)

// TestPartsKeepHostsTogether: instances of one host may share a file, so they are never in two parts; batches have as many hosts as the
// rollout says, and after a restart of the server the parts that are left are the same.
func TestPartsKeepHostsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.IntRange(1, 30).Draw(t, "hosts")
		var tasks []*record.JobTask
		for i := range rapid.IntRange(1, 900).Draw(t, "tasks") {
			tasks = append(tasks, &record.JobTask{ID: int64(i), Agent: gozzard.AgentID(fmt.Sprint("h", rapid.IntRange(1, hosts).Draw(t, "host")))})
		}
		var r *record.Rollout
		if rapid.Bool().Draw(t, "rollout") {
			r = &record.Rollout{Batch: rapid.IntRange(1, 10).Draw(t, "batch")}
		}

		parts := configfile.PartsOf(record.WorkRelease, tasks, r)
		where, n := map[gozzard.AgentID]int{}, 0
		for i, part := range parts {
			in := map[gozzard.AgentID]bool{}
			for _, task := range part {
				if at, known := where[task.Agent]; known && at != i {
					t.Fatalf("host %s is in the parts %d and %d", task.Agent, at, i)
				}
				where[task.Agent], in[task.Agent], n = i, true, n+1
			}
			last := i == len(parts)-1
			switch {
			case len(part) == 0:
				t.Fatal("a part is empty")
			case r != nil && (len(in) > r.Batch || len(in) < r.Batch && !last):
				t.Fatalf("a part has %d hosts, want %d", len(in), r.Batch)
			case r == nil && len(part) < 200 && !last:
				t.Fatalf("a part has %d tasks", len(part))
			}
		}
		if n != len(tasks) {
			t.Fatalf("%d tasks in parts, want %d", n, len(tasks))
		}

		done := rapid.IntRange(0, len(parts)-1).Draw(t, "done")
		ended := map[int64]bool{}
		for _, part := range parts[:done] {
			for _, task := range part {
				ended[task.ID] = true
			}
		}
		var left []*record.JobTask
		for _, task := range tasks {
			if !ended[task.ID] {
				left = append(left, task)
			}
		}
		if got, want := idsOf(configfile.PartsOf(record.WorkRelease, left, r)), idsOf(parts[done:]); got != want {
			t.Fatalf("parts after a restart are %s, want %s", got, want)
		}
	})
}

func idsOf(parts [][]*record.JobTask) string {
	var b strings.Builder
	for _, part := range parts {
		for _, task := range part {
			fmt.Fprint(&b, task.ID, " ")
		}
		b.WriteString("; ")
	}
	return b.String()
}
