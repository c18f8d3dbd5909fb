package api

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/record"
)

// taskPage is a page of the attempts of a task. Which attempts a task has, and their order, is decided when it is accepted.
// So a place in that order is the same attempt on every server, for as long as the results are kept.
type taskPage struct {
	task  gozzard.TaskID
	show  client.Show
	place int // of the first attempt
	limit int
}

// readTaskPage reads the parameters show, limit and cursor. The page is nil for a caller that wants the whole task.
func readTaskPage(q *query, id gozzard.TaskID) (show client.Show, page *taskPage) {
	show = client.Show(q.one("show"))
	switch show {
	case "", client.ShowAll, client.ShowFailed, client.ShowNone:
	default:
		q.faults.Add("show", `must be "all", "failed" or "none", is %q`, clip(string(show)))
	}
	if !q.values.Has("limit") && !q.values.Has("cursor") {
		return show, nil
	}

	if show == client.ShowNone {
		q.faults.Add("show", `"none" lists no attempts, so there are no pages of them: remove limit and cursor`)
	}
	page = &taskPage{task: id, show: show, limit: q.number("limit", defaultPage, 1, maxPage)}
	if q.values.Has("cursor") {
		page.goOn(q)
	}
	return page.show, page
}

// goOn continues at the cursor. It lists what the page before listed, so show need not be repeated.
func (p *taskPage) goOn(q *query) {
	c, ok := parseCursor(q.one("cursor"))
	switch {
	case !ok:
		q.faults.Add("cursor", "is damaged: send next of the page before as it is, or begin again without a cursor")
	case c.task != p.task:
		q.faults.Add("cursor", "belongs to another task, %s: begin without a cursor", c.task)
	case p.show != "" && p.show != c.show:
		q.faults.Add("cursor", "belongs to a list with show=%s: send the same, or begin without a cursor", c.show)
	}
	p.show, p.place = c.show, c.place
}

// cut returns the attempts of the page, and the cursor of the next one; "" at the end. A list of failures ends before the
// first attempt that has no verdict: it may fail later, and would be missed behind the cursor.
func (p *taskPage) cut(res *record.TaskResults) (list []client.Attempt, next string, err error) {
	if p.place > len(res.Attempts) {
		return nil, "", gozzard.Errorf(gozzard.ErrInvalid, "cursor: begins after the %d attempts of this task: begin without a cursor",
			len(res.Attempts))
	}

	list = []client.Attempt{}
	for i := p.place; i < len(res.Attempts); i++ {
		at := &res.Attempts[i]
		v := verdictOf(at)
		if len(list) == p.limit || p.show == client.ShowFailed && v == client.Running {
			return list, cursor{task: p.task, show: p.show, place: i}.String(), nil
		}
		if p.show != client.ShowFailed || v == client.Failed {
			list = append(list, renderAttempt(at, v))
		}
	}
	return list, "", nil
}

// cursor is a place in the attempts of a task. Callers get it as a text that means nothing to them. It is not secret: it
// says only where to go on, and the task is read with the rights of its caller.
type cursor struct {
	task  gozzard.TaskID
	show  client.Show
	place int
}

// A cursor has a byte for its form, one for show, the place, the task, and a checksum.
const (
	cursorForm  = 1
	cursorPlace = 2
	cursorTask  = cursorPlace + 4
	cursorSum   = 4
	cursorMost  = 256 // bytes of its text; no task id is as long
)

func (c cursor) String() string {
	failed := byte(0)
	if c.show == client.ShowFailed {
		failed = 1
	}
	b := binary.BigEndian.AppendUint32([]byte{cursorForm, failed}, uint32(c.place))
	b = append(b, c.task...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor accepts only what String returns.
func parseCursor(s string) (c cursor, ok bool) {
	if len(s) > cursorMost {
		return c, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < cursorTask+cursorSum || b[0] != cursorForm || b[1] > 1 {
		return c, false
	}
	b, sum := b[:len(b)-cursorSum], b[len(b)-cursorSum:]
	if crc32.ChecksumIEEE(b) != binary.BigEndian.Uint32(sum) {
		return c, false
	}

	c = cursor{task: gozzard.TaskID(b[cursorTask:]), show: client.ShowAll, place: int(binary.BigEndian.Uint32(b[cursorPlace:]))}
	if b[1] == 1 {
		c.show = client.ShowFailed
	}
	_, valid := c.task.Seq() // it is written into messages
	return c, valid
}
