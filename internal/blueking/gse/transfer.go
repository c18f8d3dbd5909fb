package gse

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// doorTransfer is the form of requests that transfer files.
const doorTransfer = "gse.transfer"

const (
	maxTransfers       = 100
	maxTransferHosts   = 4096             // in all tasks of a request
	maxTransferBytes   = 32 << 20         // of all sources of a request
	maxTransferSeconds = 24 * 3600        // of a request
	transferReads      = 4                // requests whose contents are in memory at the same time
	transferPatience   = 30 * time.Second // for the sources: the caller waits
)

// transfer is a file that is read on one host and written on others.
type transfer struct {
	from    taskAgent
	source  *gozzard.FileSource
	md5     string // that the source must have; "" means any
	path    string
	group   string
	folders bool
	to      []taskAgent
}

// transferFiles is async_transfer_file. It reads the sources before it answers, so that everything after that is one
// operation on files, and nothing is lost when the server ends.
func (s *server) transferFiles(ctx context.Context, c *blueking.Call) (any, error) {
	// Read the request.
	namespace := readTaskNamespace(&c.Body)
	seconds, mkdir := c.Body.Get("timeout_seconds"), c.Body.Get("auto_mkdir")
	limit := time.Duration(seconds.Int(1, maxTransferSeconds)) * time.Second
	list := s.readTransfers(c.Body.Get("tasks"), mkdir.OptBool(false))
	if err := c.Faults.Err(); err != nil {
		return nil, err
	}

	// Read the sources.
	reader, err := s.beginReading(ctx, c.Caller, namespace, min(limit, transferPatience))
	if err != nil {
		return nil, err
	}
	defer reader.end()
	var writes []gozzard.FileWrite
	for i := range list {
		writes = append(writes, reader.writes(&list[i])...)
	}

	// Write the targets.
	task, err := s.plane.WriteFiles(ctx, &gozzard.FileOperation{Caller: c.Caller, Door: doorTransfer, Writes: writes,
		IdempotencyKey: c.IdempotencyKey, RequestHash: c.Hash, Transfer: true})
	if err != nil {
		return nil, err
	}
	return taskResult{Result: taskData{TaskID: taskname.Of(task.ID)}}, nil
}

// readTransfers reads the tasks of a request.
func (s *server) readTransfers(tasks strictjson.Value, folders bool) (list []transfer) {
	hosts := 0
	n := tasks.List(maxTransfers, func(e *strictjson.Value) {
		if !e.Object() {
			return
		}
		source, target := e.Get("source"), e.Get("target")
		if !source.Object() || !target.Object() {
			return
		}

		t := transfer{folders: folders}
		t.readSource(&source)
		t.readTarget(&target, path.Base(t.source.Path))
		if hosts += len(t.to); hosts > maxTransferHosts {
			target.Fault("all tasks together have more than %d agents", maxTransferHosts)
			return
		}
		list = append(list, t)
	})
	if n == 0 && tasks.IsList() {
		tasks.Fault("at least one task is required")
	}
	return list
}

// readSource reads {file_name, store_dir, md5, agent}.
func (t *transfer) readSource(v *strictjson.Value) {
	agent, sum := v.Get("agent"), v.Get("md5")
	t.from, _ = readTaskAgent(&agent)
	t.source = &gozzard.FileSource{Host: t.from.name(formV2), Path: readFilePath(v, "")}
	t.md5 = strings.ToLower(sum.OptStr())
}

// readTarget reads {file_name, store_dir, owner, permission, agents}. Without a name the file has that of the source.
func (t *transfer) readTarget(v *strictjson.Value, name string) {
	agents, owner, permission := v.Get("agents"), v.Get("owner"), v.Get("permission")
	t.path = readFilePath(v, name)
	n := agents.List(maxTransferHosts, func(e *strictjson.Value) {
		if a, ok := readTaskAgent(e); ok {
			t.to = append(t.to, a)
		}
	})
	if n == 0 && agents.IsList() {
		agents.Fault("at least one agent is required")
	}

	account, group, _ := strings.Cut(owner.OptStr(), ":")
	for i := range t.to {
		if account != "" && account != t.to[i].account {
			owner.Fault("must be the account in user: the file belongs to the account that writes it")
			break
		}
	}
	t.group = group
	if permission.OptInt(0, 0, maxCloud) != 0 {
		permission.Fault("must be 0: the file has the permissions of the source")
	}
}

// readFilePath reads store_dir and file_name, which name one file.
func readFilePath(v *strictjson.Value, unnamed string) string {
	dir, name := v.Get("store_dir"), v.Get("file_name")
	base := name.OptStr()
	if base == "" {
		base = unnamed
	}
	if strings.Contains(base, "/") || base == "" {
		name.Fault("must be a file name without a folder")
		return ""
	}
	file := strings.TrimRight(dir.Str(), "/") + "/" + base
	if err := gozzard.ValidateFilePath(file); err != nil && dir.IsString() {
		dir.Fault("%s", err)
	}
	return file
}

// sourceReader reads the sources of a request, each once.
type sourceReader struct {
	s         *server
	ctx       context.Context
	end       func()
	caller    gozzard.Caller
	namespace string
	known     map[sourceID]*sourceView
	bytes     int
}

type sourceID struct {
	host          hostID
	account, path string
}

// sourceView is a source, or why there is none.
type sourceView struct {
	gozzard.FileView
	refused *gozzard.Outcome
}

// beginReading waits until there is room for the contents of a request.
func (s *server) beginReading(ctx context.Context, caller gozzard.Caller, namespace string,
	limit time.Duration) (*sourceReader, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		cancel()
		return nil, gozzard.Errorf(gozzard.ErrUnavailable, "%d requests already read files to transfer: try again in a moment",
			transferReads)
	}
	return &sourceReader{s: s, ctx: ctx, caller: caller, namespace: namespace, known: map[sourceID]*sourceView{},
		end: func() { cancel(); <-s.reading }}, nil
}

// writes are the files that a transfer writes. If its source cannot be read, every target has that as its verdict.
func (r *sourceReader) writes(t *transfer) []gozzard.FileWrite {
	view := r.source(t)
	list := make([]gozzard.FileWrite, len(t.to))
	for i := range t.to {
		w := gozzard.FileWrite{Namespace: r.namespace, Target: t.to[i].target, Path: t.path, Account: t.to[i].account,
			Group: t.group, Mode: plainMode(view.Mode), Content: view.Content, Source: t.source, Folders: t.folders}
		w.Target.ResultKey = t.to[i].name(formV2)
		if w.Content == nil {
			w.Content = []byte{} // an empty file
		}
		// What is refused is recorded without its description: nobody can repeat it as the write of an empty file.
		w.Refused = cmp.Or(w.Target.Refused, view.refused)
		list[i] = w
	}
	return list
}

// plainMode is the permissions of a source without what the mode of a written file cannot have: set-id bits, the sticky bit.
func plainMode(mode string) string {
	if len(mode) == 4 {
		return "0" + mode[1:]
	}
	return mode
}

// source is the source of a transfer.
func (r *sourceReader) source(t *transfer) *sourceView {
	id := sourceID{t.from.hostID(), t.from.account, t.source.Path}
	view, ok := r.known[id]
	if !ok {
		view = r.read(t)
		r.known[id] = view
	}
	if view.refused != nil || t.md5 == "" {
		return view
	}

	sum := md5.Sum(view.Content)
	if found := hex.EncodeToString(sum[:]); found != t.md5 {
		return &sourceView{refused: noSource(t, fmt.Sprintf("its md5 is %s", found))}
	}
	return view
}

// read reads a source on its host.
func (r *sourceReader) read(t *transfer) *sourceView {
	if t.from.target.Refused != nil {
		return &sourceView{refused: noSource(t, t.from.target.Refused.Message)}
	}
	view, err := r.s.plane.ReadFile(r.ctx, r.caller, gozzard.FileRead{Namespace: r.namespace, Target: t.from.target,
		Path: t.source.Path, Account: t.from.account, Transfer: true})
	switch {
	case err != nil:
		return &sourceView{refused: noSource(t, err.Error())}
	case !view.Exists:
		return &sourceView{refused: noSource(t, "there is no such file")}
	case r.bytes+len(view.Content) > maxTransferBytes:
		return &sourceView{refused: noSource(t, fmt.Sprintf("the sources of one request have more than %d bytes: send several requests",
			maxTransferBytes))}
	}
	r.bytes += len(view.Content)
	return &sourceView{FileView: view}
}

// noSource is the verdict on a target whose source cannot be read.
func noSource(t *transfer, why string) *gozzard.Outcome {
	return &gozzard.Outcome{Code: gozzard.CodeRefused, Message: fmt.Sprintf("nothing was written: the source %s on %s: %s",
		t.source.Path, t.source.Host, why)}
}
