package control_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// process is a process with everything that operations need.
func process(id int, name string, num int) topology.Process {
	return topology.Process{
		ID: id, Name: name, FuncName: "java", Num: num, Priority: 1, User: "root", WorkPath: "/data/${bk_set_name}",
		PIDFile: "/run/${FuncID}_${local_inst_id}.pid",
		Start:   "./start.sh ${inst_id}", Stop: "./stop.sh", Restart: "./restart.sh", Timeout: 30,
	}
}

// business has one set with one module that is on the hosts of me and other: process 46 on the first, 48 on the second.
func business(processes ...topology.Process) *topology.Business {
	b := &topology.Business{ID: 2, Name: "蓝鲸", Clouds: []topology.Cloud{{ID: 0, Name: "default area"}},
		Sets: []topology.Set{{ID: 5, Name: "管控平台", Env: topology.EnvFormal,
			Modules: []topology.Module{{ID: 21, Name: "gse", ServiceTemplate: 26}}}}}
	for i, p := range processes {
		ip := netip.MustParseAddr(fmt.Sprintf("127.0.0.%d", i+1))
		b.Sets[0].Modules[0].Instances = append(b.Sets[0].Modules[0].Instances,
			topology.ServiceInstance{ID: 5 + i, Name: ip.String() + "_gse", Host: topology.Host{IP: ip},
				Processes: []topology.Process{p}})
	}
	return b
}

func (r *rig) apply(b *topology.Business, edit ...func(*record.ApplyRequest)) (record.ApplyAnswer, error) {
	req := record.ApplyRequest{Caller: caller, Business: b, Source: record.SourceFile, Hash: [32]byte{7}}
	for _, f := range edit {
		f(&req)
	}
	return r.plane.ApplyTopology(r.t.Context(), req)
}

func (r *rig) mustApply(b *topology.Business, edit ...func(*record.ApplyRequest)) record.ApplyAnswer {
	r.t.Helper()
	answer, err := r.apply(b, edit...)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer
}

func dryRun(req *record.ApplyRequest)   { req.DryRun = true }
func prune(req *record.ApplyRequest)    { req.Prune = true }
func takeOver(req *record.ApplyRequest) { req.TakeOver = true }
func fromCMDB(req *record.ApplyRequest) { req.Source = record.SourceCMDB }

// statuses reports processes of the business as an agent does.
func (r *rig) statuses(agent gozzard.AgentID, session uint64, rows ...gozzard.Status) {
	r.plane.Receive(agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: session, Statuses: rows})
}

func running(name string, local int) gozzard.Status {
	return gozzard.Status{Key: topology.Key(2, name, local), State: gozzard.StateRunning,
		Wanted: gozzard.StateRunning, Hosted: true, PID: 4711, ReportedAt: 1700000000}
}

func summary(p *topology.Plan) string {
	var lines []string
	for _, part := range []struct {
		sign  string
		items []topology.Item
	}{{"+", p.Added}, {"~", p.Changed}, {"-", p.Removed}} {
		for _, it := range part.items {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s%s %d %s", part.sign, it.Kind, it.ID,
				strings.Join(it.Fields, ", "))))
		}
	}
	return strings.Join(lines, "\n")
}

func TestApplyTopology(t *testing.T) {
	r := newRig(t)
	if list := r.plane.Businesses(caller); len(list) != 0 {
		t.Fatalf("%+v", list)
	}

	planned := r.mustApply(business(process(46, "java", 1), process(48, "java", 1)), dryRun)
	if planned.Applied || planned.Version != 0 || len(r.plane.Businesses(caller)) != 0 {
		t.Fatalf("a dry run did something: %+v", planned)
	}

	done := r.mustApply(business(process(46, "java", 1), process(48, "java", 1)))
	if !done.Applied || done.Version != 1 || summary(&done.Plan) != summary(&planned.Plan) ||
		len(done.Plan.Added) == 0 {
		t.Fatalf("%+v\nplanned %+v", done, planned)
	}

	again := r.mustApply(business(process(46, "java", 1), process(48, "java", 1)))
	if again.Applied || again.Version != 1 || !again.Plan.Empty() {
		t.Fatalf("not idempotent: %+v", again)
	}

	changed := process(48, "java", 2)
	changed.Priority = 3
	done = r.mustApply(business(process(46, "java", 1), changed))
	if want := "~process 48 proc_num: 1 -> 2, priority: 1 -> 3, inst_id: 2 -> 3"; !done.Applied ||
		done.Version != 2 || summary(&done.Plan) != want {
		t.Fatalf("plan is\n%s\nwant\n%s", summary(&done.Plan), want)
	}

	heads := r.plane.Businesses(caller)
	if len(heads) != 1 || heads[0].ID != 2 || heads[0].Name != "蓝鲸" || heads[0].Version != 2 ||
		heads[0].Source != record.SourceFile {
		t.Fatalf("%+v", heads)
	}

	rec, err := r.plane.Business(t.Context(), caller, 2)
	if err != nil || rec.Version != 2 || rec.Business.Sets[0].Modules[0].Instances[1].Processes[0].Priority != 3 {
		t.Fatalf("%+v %v", rec, err)
	}

	audit, err := r.store.Audit(t.Context(), 10)
	if err != nil || len(audit) != 2 || audit[0].Act != "topology:apply:2" || audit[0].Caller != bare(caller) ||
		audit[0].RequestHash != [32]byte{7} || audit[0].Targets != 1 {
		t.Fatalf("%+v %v", audit, err)
	}

	if _, err := r.plane.Business(t.Context(), caller, 99); gozzard.KindOf(err) != gozzard.ErrNotFound {
		t.Fatal(err)
	}
}

func TestApplyAgainstAVersion(t *testing.T) {
	r := newRig(t)
	r.mustApply(business(process(46, "java", 1)), at(0))
	if _, err := r.apply(business(process(46, "java", 2)), at(0)); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Fatal(err)
	}
	if done := r.mustApply(business(process(46, "java", 2)), at(1)); done.Version != 2 {
		t.Fatalf("%+v", done)
	}
}

// TestApplyTogether: many callers change one business at the same time, and no change is lost.
func TestApplyTogether(t *testing.T) {
	r := newRig(t)
	r.mustApply(business(process(46, "java", 1)))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := process(46, "java", 1)
			p.Priority = 10 + i
			if _, err := r.apply(business(p)); err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()
	rec, err := r.plane.Business(t.Context(), caller, 2)
	if err != nil || rec.Version != 9 {
		t.Fatalf("version %d: %v", rec.Version, err)
	}

	_, rows := r.plane.FindProcesses(caller, topology.Query{Biz: 2, Limit: -1})
	if rows[0].Priority != rec.Business.Sets[0].Modules[0].Instances[0].Processes[0].Priority {
		t.Fatalf("memory has %d, the record %+v", rows[0].Priority, rec.Business)
	}
}

func TestSourcesDoNotReplaceEachOther(t *testing.T) {
	r := newRig(t)
	r.mustApply(business(process(46, "java", 1)), fromCMDB)
	_, err := r.apply(business(process(46, "java", 1)))
	if gozzard.KindOf(err) != gozzard.ErrConflict || !strings.Contains(err.Error(), "comes from cmdb") {
		t.Fatal(err)
	}
	if planned := r.mustApply(business(process(46, "java", 1)),
		dryRun); summary(&planned.Plan) != "~business 2 source: cmdb -> file" {
		t.Fatalf("%+v", planned)
	}

	if done := r.mustApply(business(process(46, "java", 1)), takeOver); !done.Applied ||
		r.plane.Businesses(caller)[0].Source != record.SourceFile {
		t.Fatalf("%+v", done)
	}

	if _, err := r.apply(business(process(46, "java", 1)), fromCMDB); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Fatal(err)
	}
}

// TestCMDBKeepsWhatItDoesNotKnow: the name and the config templates of a business stay when the business is read from
// CMDB, which has neither.
func TestCMDBKeepsWhatItDoesNotKnow(t *testing.T) {
	r := newRig(t)
	b := business(process(46, "java", 1))
	b.Templates = []topology.ConfigTemplate{{ID: 2, Name: "main", FileName: "a.ini", Path: "/etc",
		Processes: []int{46}}}
	r.mustApply(b)
	read := business(process(46, "java", 1))
	read.Name = "business 2"
	if done := r.mustApply(read, fromCMDB, takeOver); summary(&done.Plan) != "~business 2 source: file -> cmdb" {
		t.Fatalf("%+v", done)
	}

	read = business(process(46, "java", 1))
	if done := r.mustApply(read, fromCMDB); done.Applied {
		t.Fatalf("%+v", done)
	}

	rec, err := r.plane.Business(t.Context(), caller, 2)
	if err != nil || rec.Business.Name != "蓝鲸" || len(rec.Business.Templates) != 1 {
		t.Fatalf("%+v %v", rec.Business, err)
	}
}

func TestHostedProcessesAreNotRemoved(t *testing.T) {
	for name, next := range map[string]*topology.Business{
		"process gone":  business(),
		"another alias": business(process(46, "jvm", 2)),
		"fewer":         business(process(46, "java", 1)),
		"another host": func() *topology.Business {
			b := business(process(46, "java", 2))
			b.Sets[0].Modules[0].Instances[0].Host.IP = netip.MustParseAddr("127.0.0.2")
			return b
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.hello(me, 1, journalA)
			r.hello(other, 1, journalB)
			r.mustApply(business(process(46, "java", 2)))
			r.statuses(me, 1, running("java", 2))

			_, err := r.apply(next)
			var e *gozzard.Error
			if !errors.As(err, &e) || e.Kind != gozzard.ErrConflict || len(e.Faults) != 1 {
				t.Fatalf("%v", err)
			}

			want := gozzard.Fault{Path: "管控平台.gse.127.0.0.1_gse.java.46",
				Text: "GSEKIT_BIZ_2:java_2 is managed on 0:127.0.0.1"}
			if diff := cmp.Diff(want, e.Faults[0]); diff != "" {
				t.Error(diff)
			}
			if planned := r.mustApply(next, dryRun); planned.Hosted != 1 || len(planned.Named) != 1 ||
				planned.Plan.Empty() {
				t.Fatalf("%+v", planned)
			}

			done := r.mustApply(next, prune)
			if !done.Applied || done.Pruned == "" || done.Hosted != 1 {
				t.Fatalf("%+v", done)
			}

			res, err := r.plane.Results(t.Context(), caller, done.Pruned)
			if err != nil || len(res.Attempts) != 1 {
				t.Fatalf("%+v %v", res, err)
			}
			if a := res.Attempts[0]; a.Action != gozzard.ActionUnregister || a.Agent != me ||
				a.Key != topology.Key(2, "java", 2) {
				t.Fatalf("%+v", a)
			}

			op := r.op(me, 1, res.Task)
			if op.Action != gozzard.ActionUnregister {
				t.Fatalf("%+v", op)
			}
		})
	}
}

// TestHostedByRecordOnly: the host is silent, and only the record says that the process is supervised.
func TestHostedByRecordOnly(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.mustApply(business(process(46, "java", 1)))
	_, rows := r.plane.FindProcesses(caller, topology.Query{Biz: 2, Limit: -1})
	items, err := r.plane.TopologyItems(t.Context(), 2, rows, gozzard.ActionStart)
	if err != nil {
		t.Fatal(err)
	}

	task, err := r.plane.Operate(t.Context(), &gozzard.Operation{Caller: caller, Items: []gozzard.Item{items[0].Item}})
	if err != nil {
		t.Fatal(err)
	}

	r.report(me, 1, done(r.op(me, 1, task), gozzard.CodeOK))

	if _, err := r.plane.Await(t.Context(), caller, task.ID, 20e9); err != nil {
		t.Fatal(err)
	}

	r.stop()
	r.start()

	if _, err := r.apply(business()); gozzard.KindOf(err) != gozzard.ErrConflict {
		t.Fatal(err)
	}
	if list := r.plane.Businesses(caller); len(list) != 1 || list[0].Version != 1 {
		t.Fatalf("after a restart: %+v", list)
	}
}

func TestManyHostedAreNamedShortly(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.mustApply(business(process(46, "java", 50)))
	var rows []gozzard.Status
	for i := range 50 {
		rows = append(rows, running("java", i+1))
	}

	r.statuses(me, 1, rows...)
	_, err := r.apply(business())
	var e *gozzard.Error
	if !errors.As(err, &e) || len(e.Faults) != 20 || !strings.Contains(e.Message, "50 of the instances") ||
		!strings.Contains(e.Message, "the first 20 are") {
		t.Fatal(err)
	}
}

func TestWhatIsNotHostedGoesWithoutAWord(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.mustApply(business(process(46, "java", 1)))
	stopped := running("java", 1)
	stopped.State, stopped.Hosted, stopped.PID = gozzard.StateStopped, false, -1
	r.statuses(me, 1, stopped)

	if done := r.mustApply(business()); !done.Applied || done.Pruned != "" {
		t.Fatalf("%+v", done)
	}
	if n, _ := r.plane.FindProcesses(caller, topology.Query{Biz: 2, Limit: -1}); n != 0 {
		t.Fatalf("%d processes are left", n)
	}
	if _, ok := r.plane.Resolve(caller, gozzard.Target{Agent: me}); !ok {
		t.Fatal("the host is gone")
	}
}

// TestPruneFindsWhatWasLeftBehind: prune finds registered instances that no business has. They are left when the server
// dies before it unregisters them, or when a host was offline for too long.
func TestPruneFindsWhatWasLeftBehind(t *testing.T) {
	r := newRig(t)
	r.hello(me, 1, journalA)
	r.mustApply(business(process(46, "java", 1)))
	mine, left, manual := running("java", 1), running("java", 9), running("by-hand", 1)
	mine.Labels = map[string]string{"bk_process_name": "java", "bk_process_id": "46"}
	left.Labels = mine.Labels
	r.statuses(me, 1, mine, left, manual)

	if done := r.mustApply(business(process(46, "java", 1))); done.Applied || done.Pruned != "" {
		t.Fatalf("nothing was to be done: %+v", done)
	}
	if planned := r.mustApply(business(process(46, "java", 1)), prune, dryRun); planned.Hosted != 1 ||
		planned.Named[0].Path != "java.46" {
		t.Fatalf("%+v", planned)
	}

	pruned := r.mustApply(business(process(46, "java", 1)), prune)
	res, err := r.plane.Results(t.Context(), caller, pruned.Pruned)
	if err != nil || len(res.Attempts) != 1 || res.Attempts[0].Key != left.Key ||
		res.Attempts[0].Action != gozzard.ActionUnregister {
		t.Fatalf("%+v %v", res, err)
	}

	r.report(me, 1, done(r.op(me, 1, res.Task), gozzard.CodeOK))
	r.verdict(res.Task, gozzard.AgentID(res.Attempts[0].ResultKey), gozzard.AttemptOK, gozzard.CodeOK)

	r.until("it stays", func() bool {
		again := r.mustApply(business(process(46, "java", 1)), prune)
		return !again.Applied && again.Pruned == ""
	})
}
