package configfile

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// readsAtOnce bounds the files of hosts that a job has in memory at a time.
const readsAtOnce = 8

// diff compares the files that were released last with those on the hosts.
func (w *work) diff(ctx context.Context, tasks []*record.JobTask) error {
	files, err := w.rendered(ctx, tasks, true)
	if err != nil {
		return err
	}

	// Read the files of the hosts.
	results := make([]record.ConfigDone, len(files))
	errs := make([]error, len(files))
	turns := make(chan struct{}, readsAtOnce)
	var wg sync.WaitGroup
	for i := range files {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			results[i], errs[i] = w.compare(ctx, &files[i])
		})
	}
	wg.Wait()

	// Write the results into the tasks.
	done := map[*record.JobTask][]record.ConfigDone{}
	for i := range files {
		if errs[i] != nil {
			return errs[i]
		}
		t, d := files[i].task, results[i]
		if d.Reason != record.ReasonNone {
			failWith(t, d.Reason, d.Message)
		}
		done[t] = append(done[t], d)
	}
	return w.finish(tasks, done)
}

// compare compares one file. An error is one of the record, or the end of ctx.
func (w *work) compare(ctx context.Context, m *made) (record.ConfigDone, error) {
	d := doneWith(m.of, &m.file)
	view, err := w.f.o.Hosts.ReadFile(ctx, w.j.Caller, gozzard.FileRead{Namespace: gozzard.BusinessNamespace(w.j.Biz),
		Target: targetOf(m.task), Path: whole(&m.file), Account: m.of.Owner})
	if ctx.Err() != nil {
		return d, ctx.Err()
	}
	wanted, endErr := lineEnds(m.of).Apply([]byte(m.file.Content))
	switch {
	case err != nil:
		d.Reason, d.Message = record.ReasonRead, err.Error()
		return d, nil
	case endErr != nil:
		d.Reason, d.Message = record.ReasonRead, endErr.Error()
		return d, nil
	case !view.Exists:
		d.Reason, d.Message = record.ReasonAbsent, whole(&m.file)
		return d, nil
	case view.SHA256 == gozzard.FileDigest(wanted):
		return d, nil
	}

	// Keep what the host has, so that people see the difference. A large file is cut.
	d.Reason, d.Live = record.ReasonDiffers, view.SHA256
	content := view.Content[:min(len(view.Content), record.MaxConfigContent)]
	return d, w.f.o.Store.SaveConfigSnapshot(ctx, &record.ConfigSnapshot{Biz: w.j.Biz, Instance: m.file.ID, Job: w.j.ID,
		Hash: sha256.Sum256(view.Content), Content: string(content), Updated: w.f.o.Now()})
}
