//go:build linux

package tenants_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// judge looks at a shared host from outside: at records, processes, files and answers. It knows nothing of the server
// that the tenants use, and says in words what one of them did to another.
type judge struct {
	t       testing.TB
	dir     string
	parties []*party
	agents  map[int]int // pid of an agent: number of its host

	mu      sync.Mutex
	calm    map[*party]bool // that sent no request that changes something since the last look
	seen    map[string]bool // names of records
	files   map[string]string
	before  map[string]life // processes of the calm parties, by pid file
	counted map[string]int  // records by the tenant and the door of their marks, and by event
	faults  []string
}

// party is a tenant, or root, with its account and folders.
type party struct {
	name    string
	account string
	uid     uint32
	mark    string // a word that only what belongs to this party contains
	dir     string
	biz     int
	hosts   []int
}

// life is a process that runs.
type life struct {
	pid   int
	start string // when, in ticks since boot
	uid   uint32
}

// trace is what one call of the program life left.
type trace struct {
	Event, Mark string
	UID, PID    int
	Ancestors   []int
	Args        []string
	owner       uint32
}

func newJudge(t testing.TB, dir string, parties ...*party) *judge {
	t.Helper()
	return &judge{t: t, dir: dir, parties: parties, agents: map[int]int{}, calm: map[*party]bool{},
		seen: map[string]bool{}, before: map[string]life{}, counted: map[string]int{}}
}

func (j *judge) accuse(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.faults) < 50 {
		j.faults = append(j.faults, fmt.Sprintf(format, args...))
	}
}

// found returns the faults since the last call.
func (j *judge) found() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.faults
	j.faults = nil
	return list
}

// begin remembers the state of everything that must stay as it is until the next look. The parties are calm until then.
func (j *judge) begin(calm ...*party) {
	j.t.Helper()
	j.look() // what happened before is judged by what was known before
	j.calm, j.before = map[*party]bool{}, map[string]life{}
	for _, p := range calm {
		j.calm[p] = true
		for _, file := range p.pidFiles(j.t) {
			if l, ok := lifeOf(file); ok {
				j.before[file] = l
			}
		}
	}
	j.files = j.kept()
}

// look judges what happened since begin.
func (j *judge) look() {
	j.t.Helper()
	j.lookAtRecords()
	j.lookAtProcesses()
	j.lookAtFiles()
}

// lookAtRecords judges the new records: a call has the account of the tenant whose mark it has, is a child of an agent
// that this tenant may use, and is none of a calm tenant.
func (j *judge) lookAtRecords() {
	j.t.Helper()
	for _, r := range j.newRecords() {
		p := j.partyOf(r.Mark)
		if p == nil {
			j.accuse("a call has the mark %q of no party: %+v", r.Mark, r)
			continue
		}
		if r.owner != p.uid || r.UID != int(p.uid) {
			j.accuse("a command of %s ran as uid %d (owner of the record: %d), not as %s: %q", p.name, r.UID, r.owner,
				p.account, r.Args)
		}
		for _, pid := range r.Ancestors {
			if host, ok := j.agents[pid]; ok && !slices.Contains(p.hosts, host) {
				j.accuse("a command of %s ran on host %d, which is not its own: %q", p.name, host, r.Args)
			}
		}
		if j.calm[p] {
			j.accuse("%s did nothing, and its command ran: %s %q", p.name, r.Event, r.Args)
		}
		j.count(p, &r)
	}
}

// count counts a record by the door that its mark names.
func (j *judge) count(p *party, r *trace) {
	rest := strings.TrimPrefix(r.Mark, p.mark+"-")
	door, _, _ := strings.Cut(rest, "-")
	j.counted[p.name+" "+door]++
	j.counted["event "+r.Event]++
}

func (j *judge) partyOf(mark string) *party {
	for _, p := range j.parties {
		if strings.HasPrefix(mark, p.mark+"-") {
			return p
		}
	}
	return nil
}

// newRecords reads the records since the last call. The owner is what the kernel says.
func (j *judge) newRecords() (list []trace) {
	j.t.Helper()
	entries, err := os.ReadDir(filepath.Join(j.dir, "drop"))
	if err != nil {
		j.t.Fatal(err)
	}
	for _, e := range entries {
		if j.seen[e.Name()] || strings.HasPrefix(e.Name(), ".") { // a name with a dot is not complete yet
			continue
		}
		j.seen[e.Name()] = true
		path := filepath.Join(j.dir, "drop", e.Name())
		var r trace
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil {
			j.t.Fatal(err)
		}
		r.owner = ownerOf(j.t, path)
		list = append(list, r)
	}
	return list
}

// lookAtProcesses: the processes of calm parties are the same as before.
func (j *judge) lookAtProcesses() {
	for file, was := range j.before {
		if is, ok := lifeOf(file); !ok || is != was {
			j.accuse("the process of %s was %+v and is %+v, and its tenant did nothing", file, was, is)
		}
	}
}

// lookAtFiles: no file of a party belongs to another account, and what no party changes has not changed.
func (j *judge) lookAtFiles() {
	j.t.Helper()
	for _, p := range j.parties {
		walk(j.t, p.dir, func(path string) {
			if uid, ok := statOwner(path); ok && uid != p.uid {
				j.accuse("%s is in the folder of %s and belongs to uid %d", path, p.name, uid)
			}
		})
	}
	if j.files == nil {
		return
	}
	now := j.kept()
	for path, was := range j.files {
		if now[path] != was {
			j.accuse("%s was %q and is %q", path, was, now[path])
		}
	}
	for path := range now {
		if _, ok := j.files[path]; !ok {
			j.accuse("%s is new", path)
		}
	}
}

// kept is what no request changes: everything in the folders keep.
func (j *judge) kept() map[string]string {
	j.t.Helper()
	out := map[string]string{}
	for _, p := range j.parties {
		walk(j.t, filepath.Join(p.dir, "keep"), func(path string) {
			info, err := os.Lstat(path)
			if err != nil {
				j.t.Fatal(err)
			}
			b, _ := os.ReadFile(path)
			out[path] = fmt.Sprintf("%s uid %d %x", info.Mode(), info.Sys().(*syscall.Stat_t).Uid, sha256.Sum256(b))
		})
	}
	return out
}

// answer judges what a tenant is answered: nothing of another party is in it. asked is the request, which the answer
// may repeat.
func (j *judge) answer(to *party, asked, got string) {
	for _, p := range j.parties {
		if p != to && strings.Contains(got, p.mark) {
			j.accuse("%s is shown what belongs to %s: %s\n%.600s", to.name, p.name, asked, around(got, p.mark))
		}
	}
	for _, m := range pidOf.FindAllStringSubmatch(got, -1) {
		for _, p := range j.parties {
			if p != to && slices.Contains(p.pids(j.t), m[1]) {
				j.accuse("%s is shown the pid %s of %s: %s\n%.600s", to.name, m[1], p.name, asked, around(got, m[0]))
			}
		}
	}
}

var pidOf = regexp.MustCompile(`"pid":\s*([1-9]\d*)`)

func around(text, word string) string {
	i := strings.Index(text, word)
	return text[max(0, i-250):min(len(text), i+250)]
}

// pidFiles are those of the processes that the party keeps.
func (p *party) pidFiles(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(p.dir, "run", "*", "pid"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (p *party) pids(t testing.TB) (list []string) {
	t.Helper()
	for _, file := range p.pidFiles(t) {
		if b, err := os.ReadFile(file); err == nil {
			list = append(list, string(bytes.TrimSpace(b)))
		}
	}
	return list
}

// lifeOf is the live process that a pid file names.
func lifeOf(file string) (l life, ok bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return l, false
	}
	if l.pid, err = strconv.Atoi(string(bytes.TrimSpace(b))); err != nil || ft.CommOf(l.pid) != "life" {
		return life{}, false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.pid))
	if err != nil {
		return life{}, false
	}
	l.start = string(bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[19])
	l.uid, ok = statOwner(fmt.Sprint("/proc/", l.pid))
	return l, ok
}

// walk visits everything below a folder. Files may go away meanwhile.
func walk(t testing.TB, dir string, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			visit(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func statOwner(path string) (uint32, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	return info.Sys().(*syscall.Stat_t).Uid, true
}

func ownerOf(t testing.TB, path string) uint32 {
	t.Helper()
	uid, ok := statOwner(path)
	if !ok {
		t.Fatalf("%s has no owner", path)
	}
	return uid
}
