package control_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// TestTT5ContentsOfOthers: an agent gets the parts of a content that one of its own open operations names, and nothing else: not of an
// operation of another agent, not another content, not after the verdict. The server has the content after a restart, too.
func TestTT5ContentsOfOthers(t *testing.T) {
	r := newRig(t)
	r.files = true
	r.hello(me, 1, journalA)
	r.hello(other, 1, journalB)
	content := bytes.Repeat([]byte("a line of a file\n"), 20_000) // two parts
	secret := bytes.Repeat([]byte("password\n"), 40_000)
	write := func(agent gozzard.AgentID, path string, content []byte) (gozzard.Task, gozzard.Op) {
		t.Helper()
		task, err := r.plane.WriteFiles(t.Context(), &gozzard.FileOperation{Caller: caller, Door: "test", Writes: []gozzard.FileWrite{{
			Namespace: "shop", Path: path, Account: "shop", Target: gozzard.Target{Agent: agent, ResultKey: string(agent)}, Content: content}}})
		if err != nil {
			t.Fatal(err)
		}
		return task, r.op(agent, 1, task)
	}
	task, mine := write(me, "/etc/web.conf", content)
	_, theirs := write(other, "/etc/secret.conf", secret)

	ask := func(q gozzard.ContentQuery) {
		r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportContent, Session: 1, Content: &q})
	}
	part := func(offset int64) {
		t.Helper()
		n := len(r.commands(me, gozzard.CommandContent))
		ask(gozzard.ContentQuery{Op: mine.ID, SHA256: gozzard.FileDigest(content), Offset: offset})
		r.until("no part", func() bool { return len(r.commands(me, gozzard.CommandContent)) > n })
		p := r.commands(me, gozzard.CommandContent)[n].Content
		end := min(offset+gozzard.MaxPartBytes, int64(len(content)))
		if p.Offset != offset || !bytes.Equal(p.Data, content[offset:end]) || p.Sum != gozzard.PartSum(p.Data) || p.Error != "" {
			t.Errorf("at %d: offset %d, %d bytes, %q", offset, p.Offset, len(p.Data), p.Error)
		}
	}
	rejected := func(what string, q gozzard.ContentQuery) {
		t.Helper()
		n := len(r.commands(me, gozzard.CommandContent))
		ask(q)
		r.until(what+" is not counted", func() bool { _, ok := r.refused.LoadAndDelete("content_unasked"); return ok })
		if len(r.commands(me, gozzard.CommandContent)) > n {
			t.Errorf("%s: the agent gets a part", what)
		}
	}

	// The operation itself has no content.
	if len(mine.Spec) > 4096 {
		t.Errorf("the operation has %d bytes", len(mine.Spec))
	}
	part(0)
	part(gozzard.MaxPartBytes)
	part(7)

	digest := gozzard.FileDigest(secret)
	rejected("an operation of another agent", gozzard.ContentQuery{Op: theirs.ID, SHA256: digest})
	rejected("another content", gozzard.ContentQuery{Op: mine.ID, SHA256: digest})
	rejected("no operation", gozzard.ContentQuery{Op: gozzard.NewOpID(), SHA256: digest})
	rejected("before the beginning", gozzard.ContentQuery{Op: mine.ID, SHA256: gozzard.FileDigest(content), Offset: -1})
	rejected("behind the end", gozzard.ContentQuery{Op: mine.ID, SHA256: gozzard.FileDigest(content), Offset: int64(len(content))})
	r.plane.Receive(me, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportContent, Session: 1})
	r.until("an empty question is not counted", func() bool { _, ok := r.refused.LoadAndDelete("content_empty"); return ok })

	// After the verdict it is over.
	r.report(me, 1, done(mine, gozzard.CodeOK))
	r.verdict(task, me, gozzard.AttemptOK, gozzard.CodeOK)
	rejected("after the verdict", gozzard.ContentQuery{Op: mine.ID, SHA256: gozzard.FileDigest(content)})

	// The record has it for another task without the content, until its time is over.
	got, err := r.store.Content(t.Context(), gozzard.FileDigest(content))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("the record has %d bytes, %v", len(got), err)
	}
	if err := r.store.PruneContents(t.Context(), time.Now().Add(365*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	f := &gozzard.FileSpec{Path: "/etc/web.conf", Mode: "0644"}
	f.SetContent(content)
	spec := &gozzard.Spec{File: f}
	spec.Identity.User = "shop"
	_, err = r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Door: "test", Items: []gozzard.Item{{
		Action: gozzard.ActionConfigure, Key: gozzard.FileKey("shop", f.Path), Spec: spec, Targets: []gozzard.Target{{Agent: me}}}}})
	if gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Errorf("a content that is gone: %v", err)
	}
}

// TestTT5ContentsWithoutTheRight: the record keeps no content of a caller that may not write the file: nobody fills it with what
// is refused, on a host that is there, that is away, or that nobody knows.
func TestTT5ContentsWithoutTheRight(t *testing.T) {
	r := newRig(t)
	r.files = true
	r.hello(me, 1, journalA)
	with := func(g gozzard.Grant) gozzard.Caller {
		return gozzard.Caller{App: "app", User: "user", Rights: &gozzard.Rights{Grants: []gozzard.Grant{g}}}
	}
	may := gozzard.Grant{Role: gozzard.RoleOperator, Namespaces: []string{"shop"}, Hosts: gozzard.HostsAny, Accounts: []string{"shop"},
		Actions: []gozzard.Action{gozzard.ActionConfigure}}
	account, space := may, may
	account.Accounts, space.Namespaces = []string{"other"}, []string{"other"}

	for name, c := range map[string]struct {
		caller gozzard.Caller
		agent  gozzard.AgentID
		kept   bool
	}{
		"the right":       {with(may), me, true},
		"viewer":          {with(gozzard.Grant{Role: gozzard.RoleViewer, Namespaces: []string{"shop"}, Hosts: gozzard.HostsAny}), me, false},
		"another account": {with(account), me, false},
		"another space":   {with(space), me, false},
		"unknown host":    {with(account), "nobody-knows-it", false},
	} {
		content := bytes.Repeat([]byte(name+"\n"), 40_000)
		_, err := r.plane.WriteFiles(t.Context(), &gozzard.FileOperation{Caller: c.caller, Door: "test", Writes: []gozzard.FileWrite{{
			Namespace: "shop", Path: "/etc/web.conf", Account: "shop", Target: gozzard.Target{Agent: c.agent, ResultKey: "x"}, Content: content}}})
		if err != nil && c.kept {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := r.store.Content(t.Context(), gozzard.FileDigest(content)); (err == nil) != c.kept {
			t.Errorf("%s: kept %v, want %v", name, err == nil, c.kept)
		}
	}
}
