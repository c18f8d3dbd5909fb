package tenants_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/release"
	"github.com/gozzard/gozzard/internal/server"
	"github.com/gozzard/gozzard/internal/sqlstore"
	"github.com/gozzard/gozzard/internal/taskname"
	"github.com/gozzard/gozzard/internal/topology"
	"github.com/gozzard/gozzard/test/storetest"
)

// The fleet of these tests. Everything in it shows which tenant may see it: by its name, or by a tag in a place that
// answers show. A is the first tenant, B the second. What has neither name belongs to no tenant.
type place struct {
	agent gozzard.AgentID
	ip    string
	seen  string
}

func places() []place {
	return []place{{"host-a1", "10.1.0.1", "A"}, {"host-a2", "10.1.0.2", "A"}, {"host-s1", "10.3.0.1", "AB"},
		{"host-b1", "10.2.0.1", "B"},
		{"host-b2", "10.2.0.2", "B"}, {"host-n1", "10.9.0.1", "N"}}
}

type proc struct {
	agent gozzard.AgentID
	key   gozzard.Key
	seen  string
}

// kind says how the tenants of a world got their rights. With networks: by business and by namespace, both limited to
// networks. Without them: by business alone, so that only the topology says which hosts they reach.
type kind bool

const (
	networks        kind = true
	withoutNetworks kind = false
)

// procs lists each tenant's processes on the tenant's own hosts, on the shared host, and where the tenant must not see
// them: on other hosts. Tenants without networks have no namespaces but those of their businesses.
func (k kind) procs() []proc {
	list := procs()
	for i := range list {
		if _, business := gozzard.BusinessOf(list[i].key.Namespace); k == withoutNetworks && !business {
			list[i].seen = "N"
		}
	}
	return list
}

// accountOf is the account of what belongs to a tenant. What belongs to none runs as root.
func accountOf(seen string) string {
	switch seen {
	case "A":
		return "anna"
	case "B":
		return "bert"
	}
	return "root"
}

func procs() []proc {
	p := func(agent gozzard.AgentID, namespace, name, seen string) proc {
		return proc{agent, gozzard.Key{Namespace: namespace, Name: name}, seen}
	}
	return []proc{
		p("host-a1", "alpha-1", "web", "A"), p("host-b1", "beta-1", "web", "B"), p("host-a1", "alpha-2", "db", "A"),
		p("host-a1", "beta-1", "web", "N"),
		p("host-a2", "alpha-1", "web", "A"), p("host-s1", "beta-1", "web", "B"), p("host-s1", "alpha-1", "web", "A"),
		p("host-s1", "common", "web", "N"),
		p("host-b1", "alpha-1", "web", "N"), p("host-b2", "beta-2", "db", "B"), p("host-n1", "alpha-1", "web", "N"),
		p("host-s1", "JOB_BIZ_3", "x", "B"),
		p("host-s1", "JOB_BIZ_2", "x", "A"), p("host-a1", "GSEKIT_BIZ_2", "java_1", "A"),
		p("host-s1", "GSEKIT_BIZ_2", "java_1", "A"),
		p("host-b2", "GSEKIT_BIZ_2", "java_1", "N"), p("host-b1", "GSEKIT_BIZ_3", "java_1", "B"),
		p("host-s1", "GSEKIT_BIZ_3", "java_1", "B"),
		p("host-a2", "GSEKIT_BIZ_3", "java_1", "N"),
	}
}

// tag is a word that no request contains.
func tag(seen string) string { return "qq" + seen + "qq" }

// document is a business with a module that is partly, and a set that is entirely, on hosts that its tenant does not
// see.
func document(biz int, own, shared, foreign, seen string, whole bool) string {
	instance := func(id int, ip, seen string) string {
		return fmt.Sprintf(`{id: %d, name: %s-%d, host: {ip: %s, cloud: 0}, processes: [{id: %d, name: java, user: %s, work_path: /data,
          pid_file: /run/java.pid, start_cmd: ./%s, stop_cmd: ./stop}]}`, id, tag(seen), id, ip, 40+id, accountOf(seen),
			tag(seen))
	}

	instances := []string{instance(1, own, seen), instance(2, shared, seen)}
	if foreign != "" && !whole { // all hosts of the business belong to its tenant
		instances = append(instances, instance(3, foreign, seen))
	}
	hiddenSet, hiddenTemplate := "", ""

	if whole {
		instances = append(instances, instance(3, foreign, "N"))
		hiddenSet = fmt.Sprintf("\n  - {id: 8, name: %s, env: 3, modules: [{id: 81, name: %[1]s, instances: [%s]}]}",
			tag("N"),
			strings.ReplaceAll(instance(4, "10.9.0.1", "N"), "name: java", "name: other"))
		hiddenTemplate = fmt.Sprintf("\n  - {id: 2, name: %s, file_name: f, abs_path: /etc, owner: root, group: root, mode: \"0644\", bind: {processes: [43]}}", tag("N"))
	}

	return fmt.Sprintf(`biz: %d
name: %s
clouds: [{id: 0, name: default}]
sets:
  - {id: 5, name: %[2]s, env: 3, modules: [{id: 21, name: %[2]s, instances: [%[3]s]}]}%[4]s
config_templates:
  - {id: 1, name: %[2]s, file_name: f, abs_path: /etc, owner: root, group: root, mode: "0644", bind: {processes: [41]}}%[5]s
`, biz, tag(seen), strings.Join(instances, ", "), hiddenSet, hiddenTemplate)
}

func nets(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// apps are the callers. The secret of each is its code and "-secret".
func (k kind) apps() auth.Config {
	app := func(code string, grants ...gozzard.Grant) auth.App {
		return auth.App{Code: code, Secrets: []auth.Digest{auth.Hash(code + "-secret")}, AssertsUsers: true,
			Grants: grants}
	}

	// tenant has a business and, if there are networks, a namespace.
	tenant := func(seen, namespace string, biz int, net string) []gozzard.Grant {
		accounts := []string{accountOf(seen)}
		if k == withoutNetworks {
			return []gozzard.Grant{{Role: gozzard.RoleOperator, Businesses: []int{biz}, Hosts: gozzard.HostsAssigned,
				Accounts: accounts}}
		}
		hosts := nets(net, "10.3.0.0/16")
		return []gozzard.Grant{
			{Role: gozzard.RoleOperator, Namespaces: []string{namespace}, Nets: hosts, Accounts: accounts},
			{Role: gozzard.RoleOperator, Businesses: []int{biz}, Hosts: gozzard.HostsAssigned, Nets: hosts,
				Accounts: accounts}}
	}

	return auth.Config{Apps: []auth.App{
		app("admin", gozzard.Grant{Role: gozzard.RoleAdmin}),
		app("A", tenant("A", "alpha-*", 2, "10.1.0.0/16")...),
		app("B", tenant("B", "beta-*", 3, "10.2.0.0/16")...),
		app("viewer", gozzard.Grant{Role: gozzard.RoleViewer}),
		app("enroller", gozzard.Grant{Role: gozzard.RoleEnroller}),
		{Code: "nobody", Secrets: []auth.Digest{auth.Hash("nobody-secret")}, AssertsUsers: true,
			Grants: []gozzard.Grant{}},
		{Code: "plain", Secrets: []auth.Digest{auth.Hash("plain-secret")},
			Grants: []gozzard.Grant{{Role: gozzard.RoleAdmin}}},
	}, Tokens: []auth.Token{
		{User: "u", Digest: auth.Hash("good"), ID: "t1"},
		{User: "u", Digest: auth.Hash("expired"), ID: "t2", Expires: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)},
	}}
}

// done is an operation that an agent carried out.
type done struct {
	agent gozzard.AgentID
	op    gozzard.Op
}

// world is the server of the program with all its doors and limits. The test plays the agents: they carry out at once
// what they receive.
type world struct {
	t      testing.TB
	kind   kind
	server *server.Server
	server.Parts
	receive func(from gozzard.AgentID, cloud int, r *gozzard.Report) // of the server, as the fabric calls it

	mu     sync.Mutex
	did    []done
	given  []gozzard.Task  // tasks of the record
	seen   gozzard.TaskSeq // the newest of them
	jobs   []int           // how many tasks each job has
	looked int             // tasks that were waited for
	listed int             // tasks that newTasks returned
	names  names
	inbox  chan func()
}

// names are the task ids of one world: the same task has the same name in two worlds.
type names struct{ ids, names map[string]string }

func (n *names) set(name, id string) { n.ids[name], n.names[id] = id, name }

var taskID, taskName = regexp.MustCompile(`GSETASK:\d+:\d+`), regexp.MustCompile(`task-\d+`)

// put replaces names by ids.
func (n *names) put(s string) string {
	return taskName.ReplaceAllStringFunc(s, func(name string) string { return n.ids[name] })
}

// take replaces ids by names. A task that was made just now has none yet.
func (n *names) take(s string, made []gozzard.Task) string {
	return taskID.ReplaceAllStringFunc(s, func(id string) string {
		if slices.ContainsFunc(made, func(t gozzard.Task) bool { return taskname.Of(t.ID) == id }) {
			return "a new task"
		}
		return cmp.Or(n.names[id], id)
	})
}

// admin may see and do everything.
var admin = gozzard.Caller{App: "admin", User: "root", Rights: gozzard.Everything()}

// newWorld makes the whole world, or only what one tenant may see of it.
func newWorld(t testing.TB, only string) *world {
	t.Helper()
	return newWorldOf(t, networks, only)
}

// newWorldOf makes a world of a kind. change changes the options of its server.
func newWorldOf(t testing.TB, k kind, only string, change ...func(*server.Options)) *world {
	t.Helper()
	w := &world{t: t, kind: k, inbox: make(chan func(), 10_000), names: names{map[string]string{}, map[string]string{}}}
	now := time.Date(2026, 7, 1, 2, 3, 4, 0, time.UTC) // nothing expires, and both worlds show the same times
	data := t.TempDir()
	w.makeRecord(data, only, now)

	// The limits are those of the program, except those that count requests: tests send requests faster than people.
	limits := server.DefaultLimits()
	limits.AppRate, limits.Failures, limits.InFlight, limits.HelloRate = 0, 0, 0, 0

	o := server.Options{
		Data: data, Listen: "127.0.0.1:0", AgentListen: "127.0.0.1:0", Version: "test",
		Trust: server.TrustOptions{Enrol: true}, Release: server.ReleaseOptions{TwoPerson: true}, Limits: limits,
		NewFabric: w.newFabric, Now: func() time.Time { return now },
		Fatal: func(err error) { t.Errorf("fatal: %v", err) }, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}

	var err error
	if w.server, err = server.New(t.Context(), o); err != nil {
		t.Fatal(err)
	}

	w.Parts = w.server.Parts()
	w.run()
	w.publish()
	w.populate(only)
	w.newTasks()
	return w
}

// makeRecord makes the record that the server finds: its accounts and its enrolled hosts.
func (w *world) makeRecord(data, only string, at time.Time) {
	w.t.Helper()
	path := filepath.Join(data, "gozzard.db")
	storetest.NewSQLite(w.t, path)
	store, err := sqlstore.OpenSQLite(w.t.Context(), path,
		sqlstore.Options{Fatal: func(err error) { w.t.Errorf("fatal: %v", err) }})
	if err != nil {
		w.t.Fatal(err)
	}

	accounts, err := auth.Open(w.t.Context(), store, auth.Options{})
	if err == nil {
		err = accounts.Import(w.t.Context(), w.kind.apps())
	}
	if err != nil {
		w.t.Fatal(err)
	}

	enrolled(w.t, store, only, at)

	if err := store.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// A release that is published and that no upgrade has used yet.
const (
	released       = "1.2.3"
	releasedDigest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of "x"
)

func (w *world) publish() {
	w.t.Helper()
	m := &release.Manifest{Version: released, Created: time.Now(), Expires: time.Now().Add(time.Hour),
		Files: []release.File{
			{Platform: "linux/amd64", Name: "gozzard", Size: 1, SHA256: releasedDigest},
		}}
	text, err := m.Encode()
	if err == nil {
		_, err = w.Upgrades.Publish(w.t.Context(), admin, text, make([]byte, 64))
	}
	if err == nil {
		err = w.Upgrades.Upload(released, releasedDigest, strings.NewReader("x"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// run runs only the control plane: jobs and upgrades do not move, so that two worlds can be compared.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Plane.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})

	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case f := <-w.inbox:
				f()
			}
		}
	})

	w.t.Cleanup(func() {
		cancel()
		wg.Wait()
		w.server.Close()
	})
}

// populate adds what one tenant may see, in the order of the whole world.
func (w *world) populate(only string) {
	w.t.Helper()
	whole := only == ""
	for _, h := range places() {
		if !whole && !strings.Contains(h.seen, only) {
			continue
		}
		info := gozzard.HostInfo{Agent: h.agent, Addrs: []gozzard.HostAddr{{IP: netip.MustParseAddr(h.ip)}},
			Hostname: tag(h.seen), OS: "linux", Version: tag(h.seen), Files: true}
		w.receive(h.agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportHello, Session: 1,
			Journal: gozzard.JournalPos{ID: [16]byte{1}, LSN: 1},
			Hello:   &gozzard.Hello{Host: info}})
		w.until("a host is there", func() bool {
			_, ok := w.Plane.Resolve(admin,
				gozzard.Target{Agent: h.agent})
			return ok
		})

		// As every agent does, it reports all its processes after HELLO, also when it has none: no process is stale
		// because of what its host has for other tenants.
		w.receive(h.agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 1, Round: 1, Parts: 1})
	}

	seq := map[gozzard.AgentID]uint64{}
	for _, p := range w.kind.procs() {
		if !whole && !strings.Contains(p.seen, only) {
			continue
		}
		seq[p.agent]++
		text := tag(p.seen)
		w.define(p)
		w.receive(p.agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 1,
			Statuses: []gozzard.Status{{
				Key: p.key, Labels: map[string]string{"tag": text}, State: gozzard.StateRunning,
				Wanted: gozzard.StateRunning, Hosted: true, PID: 4711,
				Version: text, Message: text, ReportedAt: 1700000000}}})
		before := w.Plane.LastEvent()
		w.receive(p.agent, 0, &gozzard.Report{Version: 1, Kind: gozzard.ReportEvents, Session: 1,
			Events: []gozzard.Event{
				{Seq: seq[p.agent], Key: p.key, Kind: gozzard.EventStarted, At: 1700000000000, Message: text}}})
		w.until("an event is recorded", func() bool { return w.Plane.LastEvent() != before }) // so their order is known
	}

	w.settle()

	docs := []string{document(2, "10.1.0.1", "10.3.0.1", "10.2.0.2", "A", true),
		document(3, "10.2.0.1", "10.3.0.1", "10.1.0.2", "B", true)}
	switch {
	case w.kind == withoutNetworks: // each host of a business belongs to its tenant
		docs = []string{document(2, "10.1.0.1", "10.3.0.1", "10.1.0.2", "A", false),
			document(3, "10.2.0.1", "10.3.0.1", "10.2.0.2", "B", false)}
	case !whole:
		docs = []string{document(2, "10.1.0.1", "10.3.0.1", "", "A", false),
			document(3, "10.2.0.1", "10.3.0.1", "", "B", false)}
	}
	for _, doc := range docs {
		b, err := topology.Parse([]byte(doc))
		if err != nil {
			w.t.Fatal(err)
		}
		if whole || strings.Contains(b.Name, tag(only)) {
			if _, err := w.Plane.ApplyTopology(w.t.Context(),
				record.ApplyRequest{Caller: admin, Business: b, Source: record.SourceFile}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// define records a process, as its owner would have done.
func (w *world) define(p proc) {
	w.t.Helper()
	spec := &gozzard.Spec{Identity: gozzard.Identity{ProcName: "p", SetupPath: "/data", PIDPath: "/run/p.pid",
		User: accountOf(p.seen)},
		Control: gozzard.Control{Start: "./" + tag(p.seen)}, Policy: gozzard.DefaultPolicy()}
	w.operate(gozzard.Item{Action: gozzard.ActionUpdate, Key: p.key, Labels: map[string]string{"tag": tag(p.seen)},
		Spec:    spec,
		Targets: []gozzard.Target{{Agent: p.agent, ResultKey: "x"}}})
}

func (w *world) operate(it gozzard.Item) {
	w.t.Helper()
	if _, err := w.Plane.Operate(w.t.Context(), &gozzard.Operation{Caller: admin, Door: "api",
		Items: []gozzard.Item{it}}); err != nil {
		w.t.Fatal(err)
	}
}

// fabric replaces the fabric by the agents of a world.
type fabric struct{ *world }

func (w *world) newFabric(o server.FabricOptions) (server.Fabric, error) {
	w.receive = o.Receive
	return fabric{w}, nil
}

func (fabric) Cut(gozzard.AgentID, int)      {}
func (fabric) Flag(gozzard.AgentID) string   { return "" }
func (fabric) Counts() gozzard.FabricCounts  { return gozzard.FabricCounts{} }
func (fabric) Addr() string                  { return "127.0.0.1:1" }
func (fabric) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (fabric) Close()                        {}

// Send makes an agent carry out a command.
func (w fabric) Send(to gozzard.AgentID, cloud int, cmd *gozzard.Command) error {
	r := &gozzard.Report{Version: 1, Session: cmd.Session}
	switch cmd.Kind {
	case gozzard.CommandOperate:
		r.Kind, r.Journal = gozzard.ReportResults, gozzard.JournalPos{ID: [16]byte{1}, LSN: 1}
		w.mu.Lock()
		for _, op := range cmd.Ops {
			w.did = append(w.did, done{to, op})
			r.Results = append(r.Results, gozzard.OpReport{ID: op.ID, Ref: op.Ref, Phase: gozzard.PhaseDone,
				Outcome: gozzard.Outcome{Code: gozzard.CodeOK}})
		}
		w.mu.Unlock()
	case gozzard.CommandLogs:
		r.Kind, r.Logs = gozzard.ReportLogs, &gozzard.LogChunk{ID: cmd.Logs.ID,
			Error: cmd.Logs.Key.String() + " has no log on this host"}
		for _, p := range w.kind.procs() {
			if p.agent == to && p.key == cmd.Logs.Key {
				r.Logs.Error, r.Logs.Data, r.Logs.Next = "", []byte(tag(p.seen)), 5
			}
		}
	case gozzard.CommandFile:
		r.Kind, r.File = gozzard.ReportFile, &gozzard.FileAnswer{ID: cmd.File.ID, View: gozzard.FileView{Exists: true,
			Size: 1, SHA256: gozzard.FileDigest([]byte("x")), Content: []byte("x")}}
	default:
		return nil
	}

	w.inbox <- func() { w.receive(to, cloud, r) }
	return nil
}

func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// tasks lists all tasks of the record. It is called after every request, so it reads only those that are new.
func (w *world) tasks() []gozzard.Task {
	w.t.Helper()
	const page = 10
	var newest []gozzard.Task

	for before, more := gozzard.TaskSeq(0), true; more; {
		list, err := w.Store.TasksOf(w.t.Context(), "", "", before, page)
		if err != nil {
			w.t.Fatal(err)
		}
		known := slices.IndexFunc(list, func(t gozzard.Task) bool { return t.Seq <= w.seen })
		if more = known < 0 && len(list) == page; more {
			before = list[page-1].Seq
		}
		if known >= 0 {
			list = list[:known]
		}
		newest = append(newest, list...)
	}

	if len(newest) > 0 {
		w.seen = newest[0].Seq
	}
	slices.Reverse(newest)
	w.given = append(w.given, newest...)
	return w.given
}

// newTasks lists the ids of tasks since the last call.
func (w *world) newTasks() (ids []string) {
	for _, t := range w.tasks()[w.listed:] {
		ids = append(ids, taskname.Of(t.ID))
		w.listed++
	}
	return ids
}

// filler is the business of jobs that exist for their numbers only.
const filler = 77

// jobSizes is how many tasks each job of the record has. Jobs are numbered from 1 over all businesses.
func (w *world) jobSizes() []int {
	w.t.Helper()
	for w.hasJob(int64(len(w.jobs) + 1)) {
		page, err := w.Store.Tasks(w.t.Context(), record.JobTaskFilter{Job: int64(len(w.jobs) + 1)})
		if err != nil {
			w.t.Fatal(err)
		}
		w.jobs = append(w.jobs, page.Total)
	}
	return w.jobs
}

func (w *world) hasJob(id int64) bool {
	w.t.Helper()
	for _, biz := range []int{2, 3, 9, filler} {
		_, err := w.Store.Job(w.t.Context(), biz, id)
		if err == nil {
			return true
		}
		if gozzard.KindOf(err) != gozzard.ErrNotFound {
			w.t.Fatal(err)
		}
	}
	return false
}

// settle waits until every task has its verdicts, so that two worlds can be compared.
func (w *world) settle() {
	w.t.Helper()
	for _, task := range w.tasks()[w.looked:] {
		w.looked++
		w.until(fmt.Sprintf("task %d has its verdicts", task.Seq), func() bool {
			attempts, err := w.Store.Attempts(w.t.Context(), task.Seq)
			if err != nil {
				w.t.Fatal(err)
			}
			res := record.TaskResults{Attempts: attempts}
			return res.Open() == 0
		})
	}
}
