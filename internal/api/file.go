package api

import (
	"encoding/base64"
	"net/http"
	"reflect"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/taskname"
)

// putFile writes a file on hosts.
func (a *api) putFile(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the request and collect its faults.
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	op := &gozzard.FileOperation{Caller: caller, Door: Door, IdempotencyKey: key}
	var write gozzard.FileWrite
	var hosts []gozzard.Target
	body, err := readRequest(w, r, maxFileBody, func(root *strictjson.Value) {
		write, hosts = a.readFile(caller, root)
		confirm := root.Get("confirm")
		op.WaitOffline, op.Confirm = readWait(root), int(confirm.OptInt(0, 1, maxList))
	})
	if err != nil {
		return err
	}
	op.RequestHash = requestHash(r, body)

	// Write it.
	for _, t := range hosts {
		one := write
		one.Target = t
		one.Target.ResultKey = resultKey(t, gozzard.FileKey(write.Namespace, write.Path))
		op.Writes = append(op.Writes, one)
	}
	task, err := a.Plane.WriteFiles(r.Context(), op)
	if err != nil {
		return err
	}

	w.Header().Set("Location", "/api/v1/tasks/"+taskname.Of(task.ID))
	return answer(w, http.StatusAccepted, client.Accepted{TaskID: taskname.Of(task.ID), Targets: task.Targets})
}

// readFile reads what a request writes, and on which hosts.
func (a *api) readFile(caller gozzard.Caller, root *strictjson.Value) (gozzard.FileWrite, []gozzard.Target) {
	root.Only(fieldNames(reflect.TypeFor[client.FileRequest]())...)
	namespace, path, account := root.Get("namespace"), root.Get("path"), root.Get("account")
	group, mode, ends := root.Get("group"), root.Get("mode"), root.Get("line_ends")
	kept, expect := root.Get("kept"), root.Get("expect")

	write := gozzard.FileWrite{Namespace: defaultNamespace, Path: path.Str(), Account: account.Str(), Group: group.OptStr(),
		Mode: mode.OptStr(), LineEnds: gozzard.LineEnds(ends.OptStr()), Kept: kept.OptStr(), Expect: expect.OptStr()}
	if namespace.Given() {
		write.Namespace = requireLiteral(&namespace)
	}
	if err := gozzard.ValidateFilePath(write.Path); err != nil && write.Path != "" {
		path.Fault("%s", err)
	}
	readContent(root, &write)

	s := &selection{}
	a.readHosts(caller, root, s)
	return write, s.hosts
}

// readContent reads the content of a request that writes a file.
func readContent(root *strictjson.Value, write *gozzard.FileWrite) {
	text, encoded, kept := root.Get("content"), root.Get("content_base64"), root.Get("kept")
	given := 0
	for _, v := range []strictjson.Value{text, encoded, kept} {
		if v.Given() {
			given++
		}
	}
	if given != 1 {
		text.Fault("give exactly one of content, content_base64 and kept")
		return
	}

	switch {
	case text.Given():
		write.Content = []byte(text.OptStr())
	case encoded.Given():
		b, err := base64.StdEncoding.DecodeString(encoded.OptStr())
		if err != nil {
			encoded.Fault("is not base64: %s", err)
		}
		write.Content = append([]byte{}, b...)
	}
}

// fileQuery reads the file that a query names.
func (a *api) fileQuery(r *http.Request, caller gozzard.Caller) (gozzard.FileRead, error) {
	q, err := a.readQuery(r)
	if err != nil {
		return gozzard.FileRead{}, err
	}

	read := gozzard.FileRead{Namespace: q.one("namespace"), Path: q.one("path"), Account: q.one("account"), Kept: q.one("kept"),
		Target: a.targetOf(q, q.one("host"), caller)}
	if fault := checkName(read.Namespace); fault != "" {
		q.faults.Add("namespace", "%s", fault)
	}
	if err := gozzard.ValidateFilePath(read.Path); err != nil {
		q.faults.Add("path", "%s", err)
	}
	if read.Account == "" {
		q.faults.Add("account", "required: the file is read with its rights")
	}
	if read.Kept != "" && !gozzard.IsFileDigest(read.Kept) {
		q.faults.Add("kept", "must be a sha256 in lower case")
	}
	return read, q.faults.Err()
}

// getFile reads a file of one host, through its agent.
func (a *api) getFile(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	read, err := a.fileQuery(r, caller)
	if err != nil {
		return err
	}
	view, err := a.Plane.ReadFile(r.Context(), caller, read)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.FileOf(&view))
}

// getFileVersions lists the former contents of a file that its host keeps.
func (a *api) getFileVersions(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	read, err := a.fileQuery(r, caller)
	if err != nil {
		return err
	}
	list, err := a.Plane.FileHistory(r.Context(), caller, read)
	if err != nil {
		return err
	}

	out := client.FileVersions{Versions: make([]client.FileVersion, len(list))}
	for i, v := range list {
		out.Versions[i] = client.FileVersion{At: client.MilliTime(v.At), SHA256: v.SHA256, Size: v.Size, Owner: v.Owner, Group: v.Group,
			Mode: v.Mode, Task: int64(v.Task)}
	}
	return answer(w, http.StatusOK, out)
}
