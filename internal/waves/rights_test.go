package waves_test

import (
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

func with(g gozzard.Grant) gozzard.Caller {
	return gozzard.Caller{App: "other", User: "eve", Rights: &gozzard.Rights{Grants: []gozzard.Grant{g}}}
}

// TestTE6JobsNeedRights: a caller cannot use a job, new or existing, to do what it may not do directly.
func TestTE6JobsNeedRights(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{})
	r.gives["p1_1@0:10.0.0.1"] = gozzard.Outcome{Code: gozzard.CodeCommandFailed, Message: "no"}
	now := &gozzard.Rights{Grants: []gozzard.Grant{{Role: gozzard.RoleOperator, Businesses: []int{biz}}}}
	r.o.Rights = func(c gozzard.Caller) *gozzard.Rights {
		same(t, "the owner of the rights", c.App, caller.App)
		return now
	}

	r.run()
	j, err := r.runner.Create(t.Context(), record.JobRequest{Caller: caller, Biz: biz, Action: gozzard.ActionStop})
	if err != nil {
		t.Fatal(err)
	}

	j, tasks := r.finish(j.ID)
	same(t, "job", j.State, record.JobFailed)
	same(t, "rights of the operation", r.sent[0].op.Caller.Rights, now)

	viewer, foreign := with(gozzard.Grant{Role: gozzard.RoleViewer}),
		with(gozzard.Grant{Role: gozzard.RoleAdmin, Businesses: []int{biz + 1}})
	starter := with(gozzard.Grant{Role: gozzard.RoleOperator, Actions: []gozzard.Action{gozzard.ActionStart},
		Accounts: []string{"*", "root"}})
	for _, by := range []gozzard.Caller{viewer, foreign, starter, {App: caller.App, User: caller.User}} {
		_, err = r.runner.Create(t.Context(), record.JobRequest{Caller: by, Biz: biz, Action: gozzard.ActionStop})
		wantKind(t, err, gozzard.ErrAppForbidden)
	}

	for _, by := range []gozzard.Caller{viewer, starter} {
		_, err = r.runner.Retry(t.Context(), by, biz, j.ID, nil)
		wantKind(t, err, gozzard.ErrAppForbidden)
		if _, err := r.runner.Job(t.Context(), by, biz, j.ID); err != nil {
			t.Error(err)
		}
	}

	for _, by := range []gozzard.Caller{foreign, {App: caller.App, User: caller.User}} {
		_, err = r.runner.Retry(t.Context(), by, biz, j.ID, []int64{tasks[0].ID})
		wantKind(t, err, gozzard.ErrNotFound)
		_, err = r.runner.Tasks(t.Context(), by, biz, record.JobTaskFilter{Job: j.ID})
		wantKind(t, err, gozzard.ErrNotFound)
		if n, _, err := r.runner.Jobs(t.Context(), by, record.JobFilter{Biz: biz, Limit: -1}); n != 0 || err != nil {
			t.Errorf("%s sees %d jobs: %v", by.User, n, err)
		}
		if has, err := r.runner.HasJobs(t.Context(), by, biz); has || err != nil {
			t.Errorf("%s learns of jobs: %v", by.User, err)
		}
	}

	same(t, "operations", len(r.sent), 1)
}

// TestTI3JobsOfSomeHosts: a caller that sees a business on some hosts only sees its own jobs only.
func TestTI3JobsOfSomeHosts(t *testing.T) {
	r := newRig(t)
	r.process(1, topology.Row{})
	r.run()
	j, err := r.runner.Create(t.Context(), record.JobRequest{Caller: caller, Biz: biz, Action: gozzard.ActionStop})
	if err != nil {
		t.Fatal(err)
	}

	r.finish(j.ID)
	some := with(gozzard.Grant{Role: gozzard.RoleOperator, Clouds: []int{7}})
	_, err = r.runner.Job(t.Context(), some, biz, j.ID)
	wantKind(t, err, gozzard.ErrNotFound)
	own, err := r.runner.Create(t.Context(), record.JobRequest{Caller: some, Biz: biz, Action: gozzard.ActionStop})
	if err != nil {
		t.Fatal(err)
	}

	r.finish(own.ID)
	n, jobs, err := r.runner.Jobs(t.Context(), some, record.JobFilter{Biz: biz, Limit: -1})
	if err != nil || n != 1 || jobs[0].ID != own.ID {
		t.Errorf("%d jobs: %+v %v", n, jobs, err)
	}
	if n, _, err := r.runner.Jobs(t.Context(), some,
		record.JobFilter{Biz: biz, Users: []string{caller.User}, Limit: -1}); n != 0 || err != nil {
		t.Errorf("%d jobs of another: %v", n, err)
	}

	if n, _, err := r.runner.Jobs(t.Context(), caller, record.JobFilter{Biz: biz, Limit: -1}); n != 2 || err != nil {
		t.Errorf("%d jobs of all: %v", n, err)
	}
}
