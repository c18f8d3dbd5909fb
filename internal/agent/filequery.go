package agent

import (
	"context"

	"github.com/gozzard/gozzard"
)

const (
	maxFileQueries = 16        // queries that wait for the disk
	maxFilePart    = 256 << 10 // in one answer, well below the largest message of the fabric
)

// queueFileQuery queues a query for a file. The loop does not read files, because a slow disk would delay everything else.
// The server repeats a query that was dropped.
func (a *Agent) queueFileQuery(cmd *gozzard.Command) {
	if cmd.File == nil || a.o.Files == nil || !a.contact.Leased(cmd.Session, a.o.Now()) {
		return
	}
	select {
	case a.fileQueries <- cmd.File:
	default:
		a.log.Debug("dropped a query for a file: too many at once", "file", cmd.File.Path)
	}
}

// answerFiles answers the queries, one after the other.
func (a *Agent) answerFiles(ctx context.Context, link Link) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-a.fileQueries:
			r := a.newReport(gozzard.ReportFile)
			answer := gozzard.FileAnswer{ID: q.ID}
			if err := a.readFile(q, &answer); err != nil {
				answer = gozzard.FileAnswer{ID: q.ID, Error: clip(err.Error())}
			}
			r.File = &answer
			if err := link.Send(r); err != nil {
				a.log.Debug("cannot send a file", "err", err)
			}
		}
	}
}

// readFile reads a part of a file, or lists its former contents. The policy must allow the file, and the account must own it.
func (a *Agent) readFile(q *gozzard.FileQuery, answer *gozzard.FileAnswer) (err error) {
	if err := gozzard.ValidateFilePath(q.Path); err != nil {
		return err
	}
	if a.o.Policy != nil {
		if err := a.o.Policy.File(q.Key.Namespace, q.Account, q.Path, 0); err != nil {
			return err
		}
	}

	switch {
	case q.List:
		answer.Versions, err = a.o.Files.Versions(q.Path, q.Account)
		return err
	case q.Kept != "":
		answer.View, err = a.o.Files.Kept(q.Path, q.Account, q.Kept)
	default:
		var file OpenFile
		if file, err = a.o.Files.Open(q.Account, q.Path, false); err == nil {
			answer.View = file.View()
			file.Close()
		}
	}
	if err != nil {
		return err
	}

	// Cut out the part.
	size := int64(len(answer.View.Content))
	from := min(max(q.Offset, 0), size)
	most := int64(q.Max)
	if most <= 0 || most > maxFilePart {
		most = maxFilePart
	}
	answer.Offset = from
	answer.View.Content = answer.View.Content[from:min(from+most, size)]
	return nil
}
