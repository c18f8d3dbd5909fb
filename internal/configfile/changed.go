package configfile

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// writeAgain writes what hosts have rejected because of the present file, if that file may be replaced all the same: it is gone, it is
// what was released with other ends of lines, or a comparison has shown it. What remains gets a text that says how to go on.
func (w *work) writeAgain(ctx context.Context, tasks []*record.JobTask, list []written) error {
	var again []*written
	for i := range list {
		x := &list[i]
		if x.ok || x.write.Expect == "" {
			continue
		}
		expect, err := w.replaceable(ctx, x)
		if err != nil {
			return err
		}
		if expect != "" {
			x.write.Expect, x.outcome = expect, gozzard.Outcome{}
			again = append(again, x)
		}
	}
	if err := w.write(ctx, tasks, again, ":again"); err != nil {
		return err
	}

	for i := range list {
		if x := &list[i]; !x.ok && x.outcome.File.Code == gozzard.FileChanged {
			x.outcome.Message = w.changedByHand(x.write.Path).Error()
		}
	}
	return nil
}

// replaceable is what a second attempt expects of a file that a host has rejected; "" if there is none. An agent that does not report
// how it found the file gets no second attempt: its file stays as it is.
func (w *work) replaceable(ctx context.Context, x *written) (string, error) {
	switch found := x.outcome.File; {
	case found.Code == gozzard.FileGone:
		return gozzard.FileAbsent, nil // nothing of a person is lost
	case found.Code != gozzard.FileChanged || !gozzard.IsFileDigest(found.SHA256):
		return "", nil
	}

	accepted, err := w.accepted(ctx, x)
	if err != nil || !slices.Contains(accepted, x.outcome.File.SHA256) {
		return "", err
	}
	return x.outcome.File.SHA256, nil
}

// accepted are the digests of contents that a release may replace.
func (w *work) accepted(ctx context.Context, x *written) (list []string, err error) {
	for _, m := range x.files {
		if m.before == nil {
			continue
		}
		for _, ends := range []gozzard.LineEnds{"", gozzard.LineEndsLF, gozzard.LineEndsCRLF} {
			if content, err := ends.Apply([]byte(m.before.Content)); err == nil {
				list = append(list, gozzard.FileDigest(content))
			}
		}
		if !w.j.Choice.Shown {
			continue
		}
		shown, err := w.f.o.Store.ConfigSnapshot(ctx, w.j.Biz, m.before.ID)
		if err != nil {
			return nil, err
		}
		if shown != nil {
			list = append(list, hex.EncodeToString(shown.Hash[:]))
		}
	}
	return list, nil
}

// changedByHand says how to go on with a file that a person has changed.
func (w *work) changedByHand(path string) error {
	if w.j.Choice.Shown {
		return fmt.Errorf("file %s has changed on the host since it was released: compare it, then release it again; or replace it with: "+
			"gozzard config release --force", path)
	}
	return fmt.Errorf("file %s has changed on the host since it was released: look at it with gozzard config diff, or replace it with --force", path)
}
