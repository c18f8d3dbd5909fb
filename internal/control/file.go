package control

import (
	"cmp"
	"context"
	"fmt"

	"github.com/gozzard/gozzard"
)

// filePart is how many bytes of a file one question asks for.
const filePart = 256 << 10

// WriteFiles writes files on hosts: it is Operate for files. The attempts of the task have the order of the writes.
func (p *Plane) WriteFiles(ctx context.Context, op *gozzard.FileOperation) (gozzard.Task, error) {
	whole, err := OperationOf(op)
	if err != nil {
		return gozzard.Task{}, err
	}
	return p.Operate(ctx, whole)
}

// OperationOf is the operation that writes files.
func OperationOf(op *gozzard.FileOperation) (*gozzard.Operation, error) {
	whole := &gozzard.Operation{Caller: op.Caller, Door: op.Door, IdempotencyKey: op.IdempotencyKey,
		RequestHash: op.RequestHash, WaitOffline: op.WaitOffline, Confirm: op.Confirm, Contents: map[string][]byte{}}
	var err error
	whole.Items, err = fileItems(op.Writes, fileAction(op.Transfer), whole.Contents)
	return whole, err
}

// fileAction is the action on files whose right is needed.
func fileAction(transfer bool) gozzard.Action {
	if transfer {
		return gozzard.ActionTransfer
	}
	return gozzard.ActionConfigure
}

// fileItems are the items of an operation that writes files. Writes that follow each other and differ in their targets only
// share an item, and so their description in the record. A write that is invalid makes all of them an error. Large contents are
// put into contents.
func fileItems(writes []gozzard.FileWrite, action gozzard.Action, contents map[string][]byte) ([]gozzard.Item, error) {
	var items []gozzard.Item
	for i := range writes {
		w := &writes[i]
		if i > 0 && sameFile(&writes[i-1], w) {
			last := &items[len(items)-1]
			last.Targets = append(last.Targets, w.Target)
			continue
		}

		it := gozzard.Item{Action: action, Key: gozzard.FileKey(w.Namespace, w.Path),
			Targets: []gozzard.Target{w.Target}, Refused: w.Refused}
		if w.Refused == nil {
			spec, err := fileSpec(w, contents)
			if err != nil {
				return nil, gozzard.Errorf(gozzard.ErrInvalid, "file %s: %s", gozzard.Clip(w.Path, 200), err)
			}
			it.Spec = spec
		}
		items = append(items, it)
	}
	return items, nil
}

// sameFile reports whether two writes differ in their targets only.
func sameFile(a, b *gozzard.FileWrite) bool {
	return a.Namespace == b.Namespace && a.Path == b.Path && a.Account == b.Account && a.Group == b.Group &&
		a.Mode == b.Mode && a.LineEnds == b.LineEnds && a.Kept == b.Kept && a.Expect == b.Expect &&
		a.Source == b.Source && a.Folders == b.Folders && a.Refused == nil && b.Refused == nil &&
		(a.Content == nil) == (b.Content == nil) && string(a.Content) == string(b.Content)
}

// fileSpec is the description of a file that an operation carries.
func fileSpec(w *gozzard.FileWrite, contents map[string][]byte) (*gozzard.Spec, error) {
	f := &gozzard.FileSpec{Path: w.Path, Group: w.Group, Mode: cmp.Or(w.Mode, "0644"), SHA256: w.Kept, Expect: w.Expect,
		Source: w.Source, Folders: w.Folders}
	switch {
	case w.Account == "":
		return nil, fmt.Errorf("account: required: the file belongs to it")
	case w.Content == nil && w.Kept == "" || w.Content != nil && w.Kept != "":
		return nil, fmt.Errorf("give either a content or the digest of a content that the host keeps")
	case w.Content == nil:
		f.Kept = true
	default:
		content, err := w.LineEnds.Apply(w.Content)
		if err != nil {
			return nil, err
		}
		if f.SetContent(content); f.Parts {
			contents[f.SHA256] = content
		}
	}

	spec := &gozzard.Spec{File: f}
	spec.Identity.User = w.Account
	return spec, f.Validate()
}

// ReadFile reads a file of a host, or a former content of it that the host keeps. It needs the right to write the file, and
// fails at once when the host is offline.
func (p *Plane) ReadFile(ctx context.Context, caller gozzard.Caller, q gozzard.FileRead) (gozzard.FileView, error) {
	var whole gozzard.FileView
	for try := 0; ; {
		part, err := p.askFile(ctx, caller, q, &gozzard.FileQuery{Kept: q.Kept, Offset: int64(len(whole.Content)), Max: filePart})
		if err != nil {
			return gozzard.FileView{}, err
		}

		// Begin again if the file changed between two parts.
		v := part.View
		if v.SHA256 != whole.SHA256 && len(whole.Content) > 0 || part.Offset != int64(len(whole.Content)) {
			if try++; try > 3 {
				return gozzard.FileView{}, gozzard.Errorf(gozzard.ErrUnavailable,
					"file %s changes while it is read: try again", q.Path)
			}
			whole = gozzard.FileView{}
			continue
		}

		v.Content = append(whole.Content, v.Content...)
		more := len(v.Content) > len(whole.Content)
		if whole = v; int64(len(v.Content)) >= v.Size || !more {
			break
		}
	}

	if whole.Exists && gozzard.FileDigest(whole.Content) != whole.SHA256 {
		return gozzard.FileView{}, gozzard.Errorf(gozzard.ErrUnavailable,
			"file %s: what the agent sent does not have the digest that it named: try again", q.Path)
	}
	if whole.Exists {
		if err := p.auditRead(ctx, caller, &q, &whole); err != nil {
			return gozzard.FileView{}, err
		}
	}
	return whole, nil
}

// auditRead records that a caller sees the content of a file, before it does.
func (p *Plane) auditRead(ctx context.Context, caller gozzard.Caller, q *gozzard.FileRead, v *gozzard.FileView) error {
	if p.o.AuditRead == nil {
		return nil
	}

	row := gozzard.AuditRow{At: p.o.Now(), Caller: caller, Act: "read:file", Targets: 1, Origin: gozzard.OriginOf(ctx),
		Accounts: gozzard.CanonicalAccount(q.Account)}
	if host, known := p.Resolve(caller, q.Target); known {
		row.SetHost(host.Info.Agent, host.Info.Addrs...)
	}
	what := "the file"
	if q.Kept != "" {
		what = "a former content of the file"
	}
	err := row.SetText(fmt.Sprintf("%s %s of %s, %d bytes with sha256 %s", what, q.Path, q.Namespace, len(v.Content), v.SHA256))
	if err == nil {
		err = p.o.AuditRead(ctx, row)
	}
	if err != nil {
		return gozzard.Errorf(gozzard.ErrUnavailable, "file %s: the audit cannot record that you read it, so it is not shown: %s",
			q.Path, err)
	}
	return nil
}

// FileHistory lists the former contents of a file that a host keeps, the newest first. It needs the right to write the file.
func (p *Plane) FileHistory(ctx context.Context, caller gozzard.Caller, q gozzard.FileRead) ([]gozzard.FileVersion, error) {
	answer, err := p.askFile(ctx, caller, q, &gozzard.FileQuery{List: true})
	if err != nil {
		return nil, err
	}
	return answer.Versions, nil
}

// askFile asks the agent of a host about a file.
func (p *Plane) askFile(ctx context.Context, caller gozzard.Caller, r gozzard.FileRead,
	q *gozzard.FileQuery) (*gozzard.FileAnswer, error) {
	// Reject what the caller may not do. A content can have secrets, so reading it needs the right to write it.
	if err := gozzard.ValidateFilePath(r.Path); err != nil {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%s", err)
	}
	host, err := p.hostToAsk(caller, r.Target)
	if err != nil {
		return nil, err
	}
	action := fileAction(r.Transfer)
	if !caller.Rights.May(action, r.Namespace, host.Info.Ref(), gozzard.CanonicalAccount(r.Account)) {
		p.o.Observe.rejected("not_permitted")
		return nil, gozzard.Errorf(gozzard.ErrAppForbidden, "not permitted: app %s may not %s files of %s as account %s here",
			caller.App, action, r.Namespace, r.Account)
	}
	if !host.Info.Files {
		return nil, gozzard.Errorf(gozzard.ErrUnavailable, "%s", noFiles(host.Info.Version))
	}

	// Ask the agent.
	q.ID, q.Key = gozzard.NewOpID(), gozzard.FileKey(r.Namespace, r.Path)
	q.Path, q.Account = r.Path, r.Account
	report, err := p.ask(ctx, r.Target, host.Info.Agent, q.ID, &gozzard.Command{Kind: gozzard.CommandFile, File: q})
	if err != nil {
		return nil, err
	}
	if report.File.Error != "" {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "%s: %s", targetName(r.Target), report.File.Error)
	}
	return report.File, nil
}

// noFiles says why a host writes no files.
func noFiles(version string) string {
	return fmt.Sprintf("the agent of this host has version %s and cannot write files: upgrade it; files are written on Linux "+
		"only", cmp.Or(version, "unknown"))
}

func (p *Plane) receiveFile(from gozzard.AgentID, cloud int, r *gozzard.Report) {
	if r.File == nil {
		p.reject("file_empty", from)
		return
	}
	if p.peers.passOn(from, cloud, r.File.ID, r) {
		return
	}
	p.answered(from, r.File.ID, r, "file_unasked")
}
