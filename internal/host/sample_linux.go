package host

import (
	"os"
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// minWindow is the shortest time over which CPU usage is computed: the kernel counts in steps of 10 ms. Samples
// that follow sooner repeat the last value.
const minWindow = 200 * time.Millisecond

// The maximum of descriptors that one sample examines, per process and in total. Of a process with more, only the
// first ones are measured. Trees that are left out keep their last value, and the next sample begins with them.
// Descriptors are always counted.
const (
	lookedPerProcess = 4096
	lookedPerSample  = 128 << 10
)

// bareFor is how long the descriptors of a process are only counted if it had no file to measure and no socket, and their
// number stays the same. A count is one call; a list needs several for each descriptor. A process that has replaced one
// descriptor by another is seen after this time.
const bareFor = 3 * time.Minute

// bare is a process without a file to measure and without a socket.
type bare struct {
	start uint64
	count int32
	at    time.Time // of the list
}

// sampler holds the data for the next usage value, and the buffers of a pass. The buffers grow to the size of the
// machine once; after that a sample allocates only its answer.
type sampler struct {
	mu    sync.Mutex
	roots map[supervise.Proc]*rootSample
	round uint64
	turn  int // the tree whose descriptors are examined first

	pass  *procfs.Pass
	pids  []int
	stats []procfs.Stat
	at    map[int]int32 // pid → place in stats
	first []int32       // place of the first child, -1 without
	next  []int32       // place of the next sibling
	todo  []int32

	self    int          // pid of this program
	bare    map[int]bare // by pid
	fds     []procfs.FD
	seen    map[fileID]struct{} // of one tree
	sockets []socketOf
	bytes   map[uint64]int64 // by inode of the socket
	answer  []byte           // of the kernel, about sockets
	mute    bool             // the kernel does not report sockets; this was logged
}

// fileID is a file or socket of this machine.
type fileID struct{ dev, inode uint64 }

// socketOf is a socket that the tree of the root-th process holds.
type socketOf struct {
	root  int
	inode uint64
}

// tally is a sum that never falls, of a tree whose members come and go.
type tally struct{ last, total uint64 }

// add counts what is new since the last value.
func (t *tally) add(now uint64) {
	if now > t.last {
		t.total += now - t.last
	}
	t.last = now
}

type rootSample struct {
	at    time.Time
	ticks uint64
	cpu   float32
	user  tally
	sys   tally
	disk  int64
	net   int64
	round uint64
}

func newSampler(fs procfs.FS) sampler {
	return sampler{
		roots: map[supervise.Proc]*rootSample{}, at: map[int]int32{}, pass: fs.NewPass(),
		self: os.Getpid(), bare: map[int]bare{}, seen: map[fileID]struct{}{}, bytes: map[uint64]int64{}, answer: make([]byte, 64<<10),
	}
}

// Sample measures the trees (a process and its descendants) of the given processes in one pass over the machine.
// CPU time includes children that ended and were collected, so short-lived ones count. Memory is the sum of
// resident sets: shared pages count for each process, because the exact number costs a thousand times more to read.
// Files and sockets that a tree shares count once. The log that the agent writes for a process does not count.
func (h *Host) Sample(procs []supervise.Proc) []supervise.Usage {
	usage := make([]supervise.Usage, len(procs))
	s := &h.sampler
	s.mu.Lock()
	defer s.mu.Unlock()

	// Read all processes of the machine.
	if err := s.readAll(); err != nil {
		h.log.Warn("cannot sample processes", "err", err)
		return usage
	}
	s.round++
	now := time.Now()
	boot, err := bootTime()
	if err != nil {
		h.log.Warn("cannot sample processes", "err", err)
		return usage
	}

	// Measure every tree. Begin with the tree that the last sample left out.
	s.sockets = s.sockets[:0]
	budget, missed := lookedPerSample, -1
	for n := range procs {
		i := (s.turn + n) % len(procs)
		p := procs[i]
		place, ok := s.at[p.PID]
		if !ok || p.BootID != h.bootID || s.stats[place].Start != p.Start || s.stats[place].Dead() {
			continue
		}
		u, used, looked := s.tree(place, i, &budget, h.pageSize, h.logs.owns)
		u.Mem = float32(100 * float64(u.MemKB) * 1024 / float64(h.mem))
		r := s.share(p, used, now, now.Sub(boot.Add(ticks(p.Start))), h.cpus)
		u.CPU, u.UserTime, u.SystemTime = r.cpu, ticks(r.user.total), ticks(r.sys.total)
		u.Cores = u.CPU / 100 * float32(h.cpus)
		if !looked {
			u.Disk, u.Net = r.disk, r.net
			if missed < 0 {
				missed = i
			}
		}
		usage[i] = u
	}
	s.turn = max(0, missed)

	// Add the traffic of their sockets.
	s.network(h, usage)

	// Remember the values for trees that the next sample leaves out.
	for i, p := range procs {
		if u := usage[i]; u.Procs > 0 {
			r := s.roots[p]
			r.disk, r.net = u.Disk, u.Net
		}
	}

	// Forget processes that are no longer sampled.
	for p, r := range s.roots {
		if s.round-r.round > 100 || !s.sees(p) {
			delete(s.roots, p)
		}
	}
	for pid, b := range s.bare {
		if !s.sees(supervise.Proc{PID: pid, Start: b.start}) {
			delete(s.bare, pid)
		}
	}

	return usage
}

// network adds up the traffic of the sockets. Nothing is requested when no tree has one.
func (s *sampler) network(h *Host, usage []supervise.Usage) {
	if len(s.sockets) == 0 {
		return
	}

	clear(s.bytes)
	for _, x := range s.sockets {
		s.bytes[x.inode] = 0
	}
	if err := tcpBytes(s.bytes, s.answer); err != nil && !s.mute {
		s.mute = true
		h.log.Warn("cannot measure network use", "err", err)
	}

	for _, x := range s.sockets {
		usage[x.root].Net += s.bytes[x.inode]
	}
}

// sees reports whether the last pass saw a process.
func (s *sampler) sees(p supervise.Proc) bool {
	place, ok := s.at[p.PID]
	return ok && s.stats[place].Start == p.Start
}

// readAll reads all processes and links children to parents.
func (s *sampler) readAll() (err error) {
	// List the pids.
	if s.pids, err = s.pass.PIDs(s.pids[:0]); err != nil {
		return err
	}

	// Read each process.
	s.stats, s.first, s.next = s.stats[:0], s.first[:0], s.next[:0]
	clear(s.at)
	for _, pid := range s.pids {
		st, err := s.pass.Stat(pid)
		if err != nil {
			continue // ended in between, or hidden from the agent
		}
		s.at[pid] = int32(len(s.stats))
		s.stats, s.first, s.next = append(s.stats, st), append(s.first, -1), append(s.next, -1)
	}

	// Link each child to its parent.
	for i := range s.stats {
		if parent, ok := s.at[s.stats[i].PPID]; ok && parent != int32(i) {
			s.next[i], s.first[parent] = s.first[parent], int32(i)
		}
	}

	return nil
}

// treeTicks is the processor time of a tree.
type treeTicks struct{ user, system uint64 }

// tree sums up a process and its descendants. looked reports whether their descriptors were examined too, which the
// budget must allow.
func (s *sampler) tree(root int32, index int, budget *int, pageSize int64, ours func(fileID) bool) (u supervise.Usage,
	used treeTicks, looked bool) {
	// Begin with the root.
	clear(s.seen)
	from, all := len(s.sockets), *budget == lookedPerSample
	looked = true
	s.todo = append(s.todo[:0], root)

	// Visit all descendants. The loop is bounded, because pids that change during the pass could form a cycle.
	for len(s.todo) > 0 && int(u.Procs) <= len(s.stats) {
		place := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		st := &s.stats[place]
		used.user += st.UTime + st.CUTime
		used.system += st.STime + st.CSTime
		u.MemKB += st.RSS * pageSize >> 10
		u.Procs++
		looked = looked && *budget > 0
		u.FD += s.descriptors(st, index, looked, budget, &u.Disk, ours)
		for c := s.first[place]; c >= 0; c = s.next[c] {
			s.todo = append(s.todo, c)
		}
	}

	// Measure a tree that is larger than the whole budget in part. Leave out the sockets of other trees that were not
	// examined completely.
	looked = looked || all
	if !looked {
		s.sockets = s.sockets[:from]
	}

	return u, used, looked
}

// descriptors counts the descriptors of one process and, if they are examined, adds its files and records its
// sockets.
func (s *sampler) descriptors(st *procfs.Stat, root int, look bool, budget *int, disk *int64,
	ours func(fileID) bool) int32 {
	// Only count what is not examined, and what had nothing to examine.
	b, known := s.bare[st.PID]
	known = known && b.start == st.Start && time.Since(b.at) < bareFor
	if !look || known {
		n, err := s.pass.CountFDs(st.PID)
		if err != nil { // ended, or not readable
			return 0
		}
		if !look || int32(n) == b.count {
			return int32(n)
		}
	}

	// List the descriptors.
	s.fds = s.fds[:0]
	limit := min(*budget, lookedPerProcess)
	n, err := s.pass.FDs(st.PID, limit, &s.fds)
	if err != nil {
		return 0
	}
	*budget -= min(n, lookedPerProcess)

	// Add each file and socket once.
	isBare := n <= limit && st.PID != s.self // the list of this program has the folder that is read
	for _, fd := range s.fds {
		if !fd.Socket && !fd.Write {
			continue
		}
		id := fileID{fd.Dev, fd.Inode}
		isBare = isBare && !fd.Socket && ours(id)
		if _, ok := s.seen[id]; ok {
			continue
		}
		s.seen[id] = struct{}{}
		switch {
		case fd.Socket:
			s.sockets = append(s.sockets, socketOf{root, fd.Inode})
		case !ours(id):
			*disk += fd.Size
		}
	}

	// Remember a process that need only be counted for a while.
	if isBare {
		s.bare[st.PID] = bare{start: st.Start, count: int32(n), at: time.Now()}
	} else {
		delete(s.bare, st.PID)
	}
	return int32(n)
}

// share computes the CPU usage since the previous sample of the same process; the first value is since its start.
// Right after a member left the tree it can be too low, but never negative.
func (s *sampler) share(p supervise.Proc, of treeTicks, now time.Time, age time.Duration, cpus int) *rootSample {
	// Compute the first value since the start of the process.
	used := of.user + of.system
	r := s.roots[p]
	if r == nil {
		r = &rootSample{at: now, ticks: used, cpu: percent(used, age, cpus), round: s.round}
		r.user.add(of.user)
		r.sys.add(of.system)
		s.roots[p] = r
		return r
	}

	// Compute later values since the last one, if it is long enough ago.
	r.round = s.round
	r.user.add(of.user)
	r.sys.add(of.system)
	if elapsed := now.Sub(r.at); elapsed >= minWindow {
		r.cpu = 0
		if used > r.ticks {
			r.cpu = percent(used-r.ticks, elapsed, cpus)
		}
		r.at, r.ticks = now, used
	}

	return r
}

// percent converts to percent of the whole machine.
func percent(used uint64, over time.Duration, cpus int) float32 {
	if over <= 0 {
		return 0
	}
	return float32(min(100, 100*ticks(used).Seconds()/(over.Seconds()*float64(cpus))))
}
