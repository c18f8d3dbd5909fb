package agent

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gozzard/gozzard"
)

// Files are the files of the host, and the former contents that are kept of them.
type Files interface {
	// Open opens the folder of a file with the rights of an account, and reads the file if there is one. With folders it makes
	// those that are missing.
	Open(account, path string, folders bool) (OpenFile, error)
	// Keep keeps a content that is about to be replaced; it is durable when Keep returns.
	Keep(path string, v gozzard.FileView, task gozzard.TaskSeq) error
	// Versions lists the former contents of a file of an owner, the newest first, and Kept reads one of them.
	Versions(path, owner string) ([]gozzard.FileVersion, error)
	Kept(path, owner, digest string) (gozzard.FileView, error)
}

// OpenFile is a file that is about to be read or replaced.
type OpenFile interface {
	View() gozzard.FileView
	Same(*gozzard.FileSpec) bool   // it already is what it must be
	Check(*gozzard.FileSpec) error // why Replace could not succeed
	// Replace puts a new file into its place. At any moment the path leads to the whole old file or to the whole new one.
	Replace(spec *gozzard.FileSpec, content []byte, mark string) error
	Clear(mark string) error // removes what an interrupted Replace left
	Close()
}

// fileEntry is the file of an operation in the record of its intent: what a later run of the agent needs to find out whether
// the operation was carried out.
type fileEntry struct {
	Account string           `json:"account"`
	Spec    gozzard.FileSpec `json:"spec"` // without its content
}

// fileWork is an operation on a file that waits or runs.
type fileWork struct {
	op   *operation
	in   gozzard.Op
	spec *gozzard.Spec // nil: the definition cannot be read
}

func (w *fileWork) path() string {
	if w.spec == nil || w.spec.File == nil {
		return ""
	}
	return w.spec.File.Path
}

// fileWorkers is how many files are written at the same time. Two contents of each are in memory.
const fileWorkers = 2

// fileQueue has the operations on files in their order. Those on one path run one after the other. A goroutine exists only
// while there is something to do.
type fileQueue struct {
	mu      sync.Mutex
	waiting []fileWork
	busy    map[string]bool
	workers int
	done    sync.WaitGroup
}

// add adds an operation and makes sure that somebody works.
func (q *fileQueue) add(w fileWork, run func(fileWork)) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.waiting = append(q.waiting, w)
	if q.workers < fileWorkers {
		q.workers++
		q.done.Go(func() { q.work(run) })
	}
}

// work runs operations until there is none that may run.
func (q *fileQueue) work(run func(fileWork)) {
	for {
		w, ok := q.next()
		if !ok {
			return
		}
		run(w)
		q.mu.Lock()
		delete(q.busy, w.path())
		q.mu.Unlock()
	}
}

// next takes the first operation whose path is not busy. Without one the worker ends: the worker that is busy with the path
// of the others goes on with them.
func (q *fileQueue) next() (fileWork, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	for i, w := range q.waiting {
		if q.busy[w.path()] {
			continue
		}
		q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
		if q.busy == nil {
			q.busy = map[string]bool{}
		}
		q.busy[w.path()] = true
		return w, true
	}
	q.workers--
	return fileWork{}, false
}

// queueFile lets an operation on a file wait for its turn.
func (a *Agent) queueFile(op *operation, in *gozzard.Op) {
	w := fileWork{op: op, in: *in}
	if spec, err := gozzard.DecodeSpec(in.Spec); err == nil {
		w.spec = spec
	}
	a.files.add(w, a.runFile)
}

// runFile carries out an operation on a file.
func (a *Agent) runFile(w fileWork) {
	select {
	case <-a.ended: // what has not begun is found absent by the next session
		return
	default:
	}

	file, content, err := a.prepareFile(&w)
	if errors.Is(err, errAgentEnds) {
		return
	}
	if err != nil {
		a.rejectFile(w.op, err)
		return
	}
	defer file.Close()

	done := a.reportAct(&w.in, nil)
	a.noteFile(&w)
	if err := a.begin(w.op); err != nil { // it was cancelled, or its intent cannot be recorded: it has its verdict
		return
	}
	out := a.replaceFile(&w, file, content)
	a.finish(w.op, out, nil, false)
	if done != nil {
		done(out, nil, false)
	}
}

// fileForbidden is an error of the policy of the host.
type fileForbidden struct{ error }

// prepareFile checks an operation and finds everything that it needs. The only effect that it may have are empty folders
// (FileSpec.Folders), which a second try finds.
func (a *Agent) prepareFile(w *fileWork) (OpenFile, []byte, error) {
	// Check the operation, its account and the policy.
	if w.spec == nil || w.spec.File == nil {
		return nil, nil, errors.New("the operation has no description of a file that this agent can read")
	}
	spec, account := w.spec.File, w.spec.Identity.User
	if a.o.Files == nil {
		return nil, nil, errors.New("this agent cannot write files on this host: it can on Linux only")
	}
	if err := spec.Validate(); err != nil {
		return nil, nil, err
	}
	if account == "" {
		return nil, nil, errors.New("the operation names no account that the file belongs to")
	}
	if err := a.compareAccount(w.op.key, w.spec, w.in.Account); err != nil {
		return nil, nil, err
	}
	if a.o.Policy != nil {
		if err := a.o.Policy.File(w.op.key.Namespace, account, spec.Path, spec.Size); err != nil {
			return nil, nil, fileForbidden{err}
		}
	}

	// Find the content.
	content := spec.Content
	if spec.Kept {
		view, err := a.o.Files.Kept(spec.Path, account, spec.SHA256)
		if err == nil && a.o.Policy != nil {
			err = a.o.Policy.File(w.op.key.Namespace, account, spec.Path, view.Size)
		}
		if err != nil {
			return nil, nil, err
		}
		content = view.Content
	}

	// Look at the file. What comes in parts is asked for only if it is needed, and then the file is looked at again.
	file, err := a.lookAt(account, spec)
	if err != nil || !spec.Parts || file.Same(spec) {
		return file, content, err
	}
	file.Close()
	if content, err = a.fetchContent(w); err != nil {
		return nil, nil, err
	}
	file, err = a.lookAt(account, spec)
	return file, content, err
}

// lookAt opens a file that may be replaced.
func (a *Agent) lookAt(account string, spec *gozzard.FileSpec) (OpenFile, error) {
	file, err := a.o.Files.Open(account, spec.Path, spec.Folders)
	if err != nil {
		return nil, err
	}
	if err = checkExpected(spec, file.View()); err == nil {
		err = file.Check(spec)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// unexpected is the error of a file that is not what the caller has seen.
type unexpected struct {
	error
	found gozzard.FileResult
}

// checkExpected rejects a file that is not what the caller has seen.
func checkExpected(spec *gozzard.FileSpec, now gozzard.FileView) error {
	const advice = "compare it again, then repeat the operation, or write the file whatever it is"
	wrong := func(code gozzard.FileCode, err error) error {
		return unexpected{err, gozzard.FileResult{Code: code, SHA256: now.SHA256}}
	}
	switch {
	case spec.Expect == "" || now.Exists && (now.SHA256 == spec.Expect || now.SHA256 == spec.SHA256):
		return nil
	case !now.Exists && spec.Expect == gozzard.FileAbsent:
		return nil
	case !now.Exists:
		return wrong(gozzard.FileGone, fmt.Errorf("file %s does not exist, but the operation expects one: %s", spec.Path, advice))
	case spec.Expect == gozzard.FileAbsent:
		return wrong(gozzard.FilePresent, fmt.Errorf("file %s exists, but the operation expects none: %s", spec.Path, advice))
	}
	return wrong(gozzard.FileChanged, fmt.Errorf("file %s has changed on the host: its sha256 is %s, and the operation expects %s: %s", spec.Path,
		now.SHA256, spec.Expect, advice))
}

// rejectFile records that an operation never happens.
func (a *Agent) rejectFile(op *operation, err error) {
	var forbidden fileForbidden
	out := gozzard.Outcome{Code: gozzard.CodeRefused, Message: clip(err.Error()), Policy: errors.As(err, &forbidden)}
	var other unexpected
	if errors.As(err, &other) {
		out.File = other.found
	}
	a.log.Warn("an operation on a file was rejected", "op", op.id, "ns", op.key.Namespace, "file", op.key.Name, "err", err)

	a.mu.Lock()
	defer a.mu.Unlock()
	if gozzard.MayBegin(op.phase) {
		a.writeTombstone(op, out)
	}
}

// noteFile notes what the intent of an operation says about its file.
func (a *Agent) noteFile(w *fileWork) {
	e := &fileEntry{Account: w.spec.Identity.User, Spec: *w.spec.File}
	e.Spec.Content = nil
	a.mu.Lock()
	defer a.mu.Unlock()
	w.op.file = e
}

// replaceFile is the effect of an operation on a file: the former content is kept before the file is replaced.
func (a *Agent) replaceFile(w *fileWork, file OpenFile, content []byte) gozzard.Outcome {
	spec, before := w.spec.File, file.View()
	if file.Same(spec) {
		return gozzard.Outcome{Code: gozzard.CodeOK, Message: "unchanged: the file has this content, group and mode",
			File: gozzard.FileResult{Code: gozzard.FileSame, SHA256: before.SHA256}}
	}

	if before.Exists && before.SHA256 != spec.SHA256 {
		if err := a.o.Files.Keep(spec.Path, before, w.op.ref.Task); err != nil {
			return gozzard.Outcome{Code: gozzard.CodeRefused,
				Message: clip(fmt.Sprintf("nothing was written: the former content of %s cannot be kept: %v", spec.Path, err))}
		}
	}
	a.o.Failpoint("file-kept")

	if err := file.Replace(spec, content, w.op.id.String()); err != nil {
		return gozzard.Outcome{Code: gozzard.CodeRefused, Message: clip(err.Error())}
	}
	if !before.Exists {
		return gozzard.Outcome{Code: gozzard.CodeOK, Message: "the file is new", File: gozzard.FileResult{Code: gozzard.FileNew}}
	}
	return gozzard.Outcome{Code: gozzard.CodeOK, Message: "replaced the content with sha256 " + before.SHA256,
		File: gozzard.FileResult{Code: gozzard.FileReplaced, SHA256: before.SHA256}}
}

// recoverFile finds out whether an operation that was in progress when the agent died has replaced its file. The file itself
// is the evidence: it takes its place in one step, with everything that the operation gives it.
func (a *Agent) recoverFile(op *operation) (done bool) {
	if op.file == nil || a.o.Files == nil {
		return false
	}

	file, err := a.o.Files.Open(op.file.Account, op.file.Spec.Path, false)
	if err != nil {
		a.log.Warn("cannot look at the file of an interrupted operation", "op", op.id, "err", err)
		return false
	}
	defer file.Close()
	if err := file.Clear(op.id.String()); err != nil {
		a.log.Warn("cannot remove a temporary file", "op", op.id, "file", op.file.Spec.Path, "err", err)
	}
	return file.Same(&op.file.Spec)
}
