package host

import (
	"sync"
	"time"

	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// minWindow is the shortest time over which a share of the processor is computed: the kernel counts in steps of 10 ms. Samples that follow
// sooner repeat the last share.
const minWindow = 200 * time.Millisecond

// sampler keeps what a share is computed from, and the buffers of a pass. Buffers grow to the size of the machine once.
type sampler struct {
	mu    sync.Mutex
	roots map[supervise.Proc]*rootSample
	round uint64

	line  [1024]byte
	pids  []int
	stats []procfs.Stat
	at    map[int]int32 // pid → place in stats
	first []int32       // place of the first child, -1 without
	next  []int32       // place of the next sibling
	todo  []int32
}

type rootSample struct {
	at    time.Time
	ticks uint64
	cpu   float32
	round uint64
}

func newSampler() sampler {
	return sampler{roots: map[supervise.Proc]*rootSample{}, at: map[int]int32{}}
}

// Sample measures the trees (a process and its descendants) of the given processes in one pass over the machine. Processor time includes that of
// children that ended and were waited for, so that short-lived ones count. Memory is the sum of resident sets: pages that are shared count for
// each process that has them, because the exact number costs a thousand times more to read.
func (h *Host) Sample(procs []supervise.Proc) []supervise.Usage {
	usage := make([]supervise.Usage, len(procs))
	s := &h.sampler
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readAll(h.proc); err != nil {
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
	for i, p := range procs {
		place, ok := s.at[p.PID]
		if !ok || p.BootID != h.bootID || s.stats[place].Start != p.Start || s.stats[place].Dead() {
			continue
		}
		u, used := s.tree(h.proc, place, h.pageSize)
		u.Mem = float32(100 * float64(u.MemKB) * 1024 / float64(h.mem))
		u.CPU = s.share(p, used, now, now.Sub(boot.Add(ticks(p.Start))), h.cpus)
		usage[i] = u
	}
	for p, r := range s.roots { // of processes nobody asks for any more
		if s.round-r.round > 100 || !s.sees(p) {
			delete(s.roots, p)
		}
	}
	return usage
}

func (s *sampler) sees(p supervise.Proc) bool {
	place, ok := s.at[p.PID]
	return ok && s.stats[place].Start == p.Start
}

// readAll takes a picture of all processes and links children to parents.
func (s *sampler) readAll(fs procfs.FS) (err error) {
	if s.pids, err = fs.PIDs(s.pids[:0]); err != nil {
		return err
	}
	s.stats, s.first, s.next = s.stats[:0], s.first[:0], s.next[:0]
	clear(s.at)
	for _, pid := range s.pids {
		st, err := fs.StatInto(pid, s.line[:])
		if err != nil {
			continue // gone meanwhile, or hidden from us
		}
		s.at[pid] = int32(len(s.stats))
		s.stats, s.first, s.next = append(s.stats, st), append(s.first, -1), append(s.next, -1)
	}
	for i := range s.stats {
		if parent, ok := s.at[s.stats[i].PPID]; ok && parent != int32(i) {
			s.next[i], s.first[parent] = s.first[parent], int32(i)
		}
	}
	return nil
}

// tree sums up a process and its descendants.
func (s *sampler) tree(fs procfs.FS, root int32, pageSize int64) (u supervise.Usage, used uint64) {
	s.todo = append(s.todo[:0], root)
	for len(s.todo) > 0 && int(u.Procs) <= len(s.stats) { // bounded: pids that change during the pass could make a circle
		place := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		st := &s.stats[place]
		used += st.Ticks()
		u.MemKB += st.RSS * pageSize >> 10
		u.Procs++
		if n, err := fs.FDs(st.PID); err == nil { // else gone, or not ours to count
			u.FD += int32(n)
		}
		for c := s.first[place]; c >= 0; c = s.next[c] {
			s.todo = append(s.todo, c)
		}
	}
	return u, used
}

// share computes the processor use since the previous sample of the same process, of the first one since its start. It can be low, never
// negative, right after a member has left the tree.
func (s *sampler) share(p supervise.Proc, used uint64, now time.Time, age time.Duration, cpus int) float32 {
	r := s.roots[p]
	if r == nil {
		r = &rootSample{at: now, ticks: used, cpu: percent(used, age, cpus), round: s.round}
		s.roots[p] = r
		return r.cpu
	}
	r.round = s.round
	if elapsed := now.Sub(r.at); elapsed >= minWindow {
		r.cpu = 0
		if used > r.ticks {
			r.cpu = percent(used-r.ticks, elapsed, cpus)
		}
		r.at, r.ticks = now, used
	}
	return r.cpu
}

// percent is of the whole machine.
func percent(used uint64, over time.Duration, cpus int) float32 {
	if over <= 0 {
		return 0
	}
	return float32(min(100, 100*ticks(used).Seconds()/(over.Seconds()*float64(cpus))))
}
