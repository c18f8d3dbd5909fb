package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

// TaskPart chooses a page of the attempts of a task.
type TaskPart struct {
	Show   Show          // ShowAll or ShowFailed; "" is that of the cursor, or all
	Limit  int           // attempts, at most MaxPage
	Cursor string        // Next of the page before; "" for the first page
	Wait   time.Duration // as of Task
}

// TaskPart reads a task with one page of its attempts. Its Next is the cursor of the next page, "" at the end. The attempts
// of a task keep their order, so all pages together have each attempt once, also if verdicts arrive meanwhile; an attempt
// has the state that it had when its page was read. A page of failures ends before the first attempt without a verdict: it may
// be empty although there is a next one.
func (c *Client) TaskPart(ctx context.Context, id string, p TaskPart) (Task, error) {
	q := url.Values{}
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	for name, value := range map[string]string{"show": string(p.Show), "cursor": p.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if p.Wait > 0 {
		q.Set("wait", p.Wait.String())
	}

	var t Task
	err := c.get(ctx, "/api/v1/tasks/"+url.PathEscape(id), q, &t)
	return t, err
}

// WholeTask reads a task with all its attempts, page by page, so that no answer is very large. The counts are those of
// the attempts as they were read. Servers of earlier versions have no pages: they answer at once.
func (c *Client) WholeTask(ctx context.Context, id string) (Task, error) {
	t, err := c.TaskPart(ctx, id, TaskPart{Limit: MaxPage})
	if gozzard.KindOf(err) == gozzard.ErrInvalid {
		return c.Task(ctx, id, 0, ShowAll)
	}
	if err != nil || t.Next == "" {
		return t, err
	}

	whole := t
	for t.Next != "" {
		if t, err = c.TaskPart(ctx, id, TaskPart{Limit: MaxPage, Cursor: t.Next}); err != nil {
			return Task{}, err
		}
		whole.Attempts = append(whole.Attempts, t.Attempts...)
	}
	whole.Next, whole.Waiting = "", t.Waiting
	whole.count()
	return whole, nil
}

// count counts the attempts that are listed.
func (t *Task) count() {
	t.Counts = Counts{Targets: len(t.Attempts)}
	for i := range t.Attempts {
		switch t.Attempts[i].Verdict {
		case Done:
			t.Counts.Done++
		case Noted:
			t.Counts.Done++
			t.Counts.Noted++
		case Failed:
			t.Counts.Failed++
		case Running:
			t.Counts.Running++
		}
	}
	t.Final = t.Counts.Running == 0
}
