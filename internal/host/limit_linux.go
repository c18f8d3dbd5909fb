package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

const (
	cpuPeriod   = 100_000 // microseconds, the kernel's own default
	minCPUQuota = 1_000   // the minimum of the kernel
	minMemory   = 1 << 20 // below this nothing can even start
	// tasks of one process tree: far more than a service has, far less than a fork bomb needs to do harm
	maxTasks = 4096
	noQuota  = "-1"
)

// The controllers that are used where the machine has them.
const (
	cpuController    = "cpu"
	memoryController = "memory"
	pidsController   = "pids"
)

// limits are the kernel limits of processes. With cgroup version 2 they are set on the cgroup that a process
// already has. On many machines version 1 still owns the controllers: then a process also has a group with the same
// name in each of their trees, and its shell is started in these groups.
type limits struct {
	cpus int
	mem  int64
	two  map[string]bool   // controllers of version 2
	base string            // of version 2
	one  map[string]string // controllers of version 1 and our folder in their tree

	mu      sync.Mutex
	want    map[string]gozzard.Resource // what is enforced, by folder
	bounded map[string]bool             // folders whose number of tasks is bounded in version 1
}

// findLimits finds the controllers that can be used. Without cgroup v2 it is unknown which processes belong
// together, so nothing is limited.
func (h *Host) findLimits() *limits {
	l := &limits{cpus: h.cpus, mem: h.mem, two: map[string]bool{}, one: map[string]string{},
		want: map[string]gozzard.Resource{}, bounded: map[string]bool{}}
	if h.groups == nil {
		return l
	}

	// Find the controllers of version 1.
	l.base = h.groups.base
	mounts, err := h.proc.Cgroup1Mounts()
	if err != nil {
		h.log.Warn("cannot look for controllers", "err", err)
	}

	// Prefer version 2 for each controller.
	for _, c := range []string{cpuController, memoryController, pidsController} {
		if !h.groups.shared && delegate(l.base, c) {
			l.two[c] = true
		} else if root := mounts[c]; root != "" && unix.Access(root, unix.W_OK) == nil {
			l.one[c] = filepath.Join(root, "gozzard", h.instance)
		}
	}

	// Record which limits are missing.
	if !l.two[pidsController] && l.one[pidsController] == "" {
		h.addDegraded("no usable cgroup controller for pids: the number of a process's tasks is not bounded")
	}
	for _, c := range []string{cpuController, memoryController} {
		if !l.two[c] && l.one[c] == "" {
			h.addDegraded("no usable cgroup controller for %s: its limit is watched, but cannot be enforced by the kernel", c)
		}
	}

	return l
}

// delegate enables a controller of version 2 for the groups in base, on every level from the root down.
func delegate(base, controller string) bool {
	root := filepath.Dir(filepath.Dir(base))
	for _, dir := range []string{root, filepath.Dir(base), base} {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil || !hasWord(b, controller) {
			return false
		}
		file := filepath.Join(dir, "cgroup.subtree_control")
		if b, err := os.ReadFile(file); err == nil && hasWord(b, controller) {
			continue
		}
		if writeExisting(file, "+"+controller) != nil {
			return false
		}
	}

	return true
}

func hasWord(b []byte, word string) bool {
	for w := range strings.FieldsSeq(string(b)) {
		if w == word {
			return true
		}
	}
	return false
}

// Limit sets the kernel limits of a process's cgroup, at once and for everything that is started later.
func (h *Host) Limit(key gozzard.Key, r gozzard.Resource) (mode string, err error) {
	// Store the limits for everything that is started later.
	l, folder := h.limits, keyFolder(key)
	l.mu.Lock()
	if r.Enforce && (r.LimitsCPU() || r.LimitsMem()) {
		l.want[folder] = r
	} else {
		delete(l.want, folder)
		r = gozzard.Resource{}
	}
	l.mu.Unlock()

	// Find out which cgroup version enforces them.
	mode, err = l.mode(r)

	// Apply them to what is running.
	if err == nil && h.groups != nil {
		err = l.apply(folder, r)
	}
	if err == nil && mode == "cgroup1" {
		err = l.gather(h.groups, folder, key)
	}
	if err != nil {
		return mode, fmt.Errorf("cannot limit %s: %w", key, err)
	}
	return mode, nil
}

// OOMKills reads how often the kernel killed a process of the group for its memory.
func (h *Host) OOMKills(key gozzard.Key) int {
	l, folder := h.limits, keyFolder(key)
	switch {
	case l.one[memoryController] != "":
		return countIn(filepath.Join(l.one[memoryController], folder, "memory.oom_control"))
	case l.two[memoryController]:
		return countIn(filepath.Join(l.base, folder, "memory.events"))
	}
	return 0
}

// countIn finds the line "oom_kill N". A group that does not exist counts as 0.
func countIn(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(text)) // written by the kernel
			return n
		}
	}
	return 0
}

// mode is the cgroup version that enforces the limits, or the error when one of them cannot be enforced.
func (l *limits) mode(r gozzard.Resource) (mode string, err error) {
	for _, x := range []struct {
		controller string
		wanted     bool
	}{{cpuController, r.LimitsCPU()}, {memoryController, r.LimitsMem()}} {
		switch {
		case !x.wanted:
		case l.one[x.controller] != "":
			mode = "cgroup1"
		case !l.two[x.controller]:
			return "", fmt.Errorf("the kernel has no controller for %s here", x.controller)
		case mode == "":
			mode = "cgroup2"
		}
	}
	return mode, nil
}

// prepare is called after the group of a process was made for a command: with version 2 the limits belong to the
// group.
func (l *limits) prepare(folder string) {
	l.mu.Lock()
	r, ok := l.want[folder]
	l.mu.Unlock()

	if l.two[pidsController] {
		// A failure does not prevent the start.
		_ = writeExisting(filepath.Join(l.base, folder, "pids.max"), strconv.Itoa(maxTasks))
	}
	if ok {
		_ = l.apply(folder, r) // a failure does not prevent the start; Limit reported it
	}
}

// apply writes the limits of a process; 0 means no limit. A group that does not exist gets them when it is made.
func (l *limits) apply(folder string, r gozzard.Resource) error {
	var errs []error
	if l.two[cpuController] {
		errs = append(errs, l.set2(folder, "cpu.max", l.quota(r, "max")+" "+strconv.Itoa(cpuPeriod)))
	}
	if l.two[memoryController] {
		high, limit := l.memory(r, "max")
		errs = append(errs, l.set2(folder, "memory.high", high), l.set2(folder, "memory.max", limit))
	}

	if l.one[cpuController] != "" {
		errs = append(errs, l.set1(cpuController, folder, r.LimitsCPU(), "cpu.cfs_quota_us", l.quota(r, noQuota)))
	}
	if l.one[memoryController] != "" {
		soft, limit := l.memory(r, noQuota)
		errs = append(errs, l.set1(memoryController, folder, r.LimitsMem(), "memory.soft_limit_in_bytes", soft),
			l.set1(memoryController, folder, r.LimitsMem(), "memory.limit_in_bytes", limit))
	}

	return errors.Join(errs...)
}

// quota is the processor time per period. Of two forms of the limit, the lower one counts.
func (l *limits) quota(r gozzard.Resource, none string) string {
	if !r.LimitsCPU() {
		return none
	}
	cores := r.CPUs
	if share := r.CPU / 100 * float64(l.cpus); r.CPU > 0 && (cores <= 0 || share < cores) {
		cores = share
	}
	return strconv.FormatInt(max(minCPUQuota, int64(cores*cpuPeriod)), 10)
}

// memory returns two sizes: above high the kernel slows the process down and takes pages back; at limit it kills the
// process. Of two forms of the limit, the lower one counts.
func (l *limits) memory(r gozzard.Resource, none string) (high, limit string) {
	if !r.LimitsMem() {
		return none, none
	}
	n := r.MemB
	if share := int64(r.Mem / 100 * float64(l.mem)); r.Mem > 0 && (n <= 0 || share < n) {
		n = share
	}
	n = max(minMemory, n)
	return strconv.FormatInt(n-n/10, 10), strconv.FormatInt(n, 10)
}

func (l *limits) set2(folder, file, text string) error {
	if err := writeExisting(filepath.Join(l.base, folder, file), text); !isAbsent(err) {
		return err
	}
	return nil
}

// set1 writes to a group of version 1. The group is made when there is a limit to set.
func (l *limits) set1(controller, folder string, make bool, file, text string) error {
	dir := filepath.Join(l.one[controller], folder)
	if make {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := writeExisting(filepath.Join(dir, file), text); !isAbsent(err) {
		return err
	}
	return nil
}

// tasks returns the files through which a thread enters the version 1 groups of a process. Missing groups are made.
func (l *limits) tasks(folder string) []string {
	l.mu.Lock()
	r := l.want[folder]
	l.mu.Unlock()

	var files []string
	wants := map[string]bool{cpuController: r.LimitsCPU(), memoryController: r.LimitsMem(), pidsController: true}
	for controller, wanted := range wants {
		if base := l.one[controller]; base != "" && wanted {
			files = append(files, filepath.Join(base, folder, "tasks"))
		}
	}

	if l.one[pidsController] != "" {
		l.boundTasks(folder)
	}
	if r.Enforce {
		_ = l.apply(folder, r)
	}

	return files
}

// boundTasks makes the version 1 group of a process with its number of tasks. The group stays from one run to the next, so
// this is usually one call.
func (l *limits) boundTasks(folder string) {
	made := unix.Mkdir(filepath.Join(l.one[pidsController], folder), 0o755)
	l.mu.Lock()
	done := l.bounded[folder] && errors.Is(made, unix.EEXIST)
	l.mu.Unlock()
	if done {
		return
	}

	// A failure does not prevent the start.
	err := l.set1(pidsController, folder, true, "pids.max", strconv.Itoa(maxTasks))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.bounded[folder] = true
	}
}

// gather moves the processes of a key into its version 1 groups. Processes that they start later follow them.
func (l *limits) gather(groups *cgroups, folder string, key gozzard.Key) error {
	pids, err := groups.members(key)
	if err != nil {
		return err
	}

	l.mu.Lock()
	r := l.want[folder]
	l.mu.Unlock()

	var errs []error
	for controller, wanted := range map[string]bool{cpuController: r.LimitsCPU(), memoryController: r.LimitsMem()} {
		if base := l.one[controller]; base != "" && wanted {
			errs = append(errs, move(filepath.Join(base, folder), pids))
		}
	}

	return errors.Join(errs...)
}

// move puts processes into a version 1 group, except those that are in it. It ignores processes that ended.
func move(dir string, pids []int) error {
	inside, err := treeProcs(dir, nil)
	if err != nil {
		return err
	}
	has := map[int]bool{}
	for _, pid := range inside {
		has[pid] = true
	}

	for _, pid := range pids {
		if has[pid] {
			continue
		}
		if err := writeExisting(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid)); err != nil &&
			!errors.Is(err, unix.ESRCH) && !isAbsent(err) {
			return fmt.Errorf("cannot move pid %d: %w", pid, err)
		}
	}

	return nil
}

// tidy removes version 1 groups without processes.
func (l *limits) tidy(groups *cgroups) {
	for _, base := range l.one {
		for _, folder := range folders(base) {
			groups.mu.Lock() // no command begins meanwhile
			if !groups.usesAll(folder) && !groups.exists(folder, "") {
				l.mu.Lock()
				delete(l.bounded, folder)
				l.mu.Unlock()
				_ = removeTree(filepath.Join(base, folder)) // fails when members are left
			}
			groups.mu.Unlock()
		}
	}
}

// close removes the folders that are empty.
func (l *limits) close(groups *cgroups) {
	l.tidy(groups)
	for _, base := range l.one {
		_ = os.Remove(base)
		_ = os.Remove(filepath.Dir(base)) // fails while other agents have groups inside
	}
}
