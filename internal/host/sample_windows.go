package host

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard/internal/supervise"
)

// minWindow is the shortest time over which CPU usage is computed: the system counts in steps of up to 16 ms.
// Samples that follow sooner repeat the last value.
const minWindow = 200 * time.Millisecond

// firstSize is the first size of the buffer for the list of all processes, in words.
const firstSize = 64 << 10

// stat is one process in the list of all processes.
type stat struct {
	pid, parent  int
	start        uint64
	user, kernel time.Duration
	memory       int64
	handles      int32
	threads      int
}

// sampler holds the data for the next usage value, and the buffers of a pass, which grow to the size of the machine
// once.
type sampler struct {
	mu    sync.Mutex
	roots map[supervise.Proc]*rootSample
	round uint64

	list  []uint64 // of all processes, as the system writes and aligns it
	stats []stat
	at    map[int]int32 // pid → place in stats
	first []int32       // place of the first child, -1 without
	next  []int32       // place of the next sibling
	todo  []int32
}

// treeTime is the processor time of a tree.
type treeTime struct{ user, system time.Duration }

// tally is a sum that never falls, of a tree whose members come and go.
type tally struct{ last, total time.Duration }

// add counts what is new since the last value.
func (t *tally) add(now time.Duration) {
	if now > t.last {
		t.total += now - t.last
	}
	t.last = now
}

type rootSample struct {
	at    time.Time
	used  time.Duration
	cpu   float32
	user  tally
	sys   tally
	round uint64
}

func newSampler() *sampler {
	return &sampler{roots: map[supervise.Proc]*rootSample{}, at: map[int]int32{}, list: make([]uint64, firstSize)}
}

// Sample measures the trees (a process and its descendants) of the given processes in one pass over the machine. CPU
// time is that of the running members: the time of a child that ended between two samples is lost. Memory is the sum
// of working sets: shared pages count for each process. FD counts handles of every kind.
func (h *Host) Sample(procs []supervise.Proc) []supervise.Usage {
	usage := make([]supervise.Usage, len(procs))
	s := h.sampler
	s.mu.Lock()
	defer s.mu.Unlock()

	// Read all processes of the machine.
	if err := s.readAll(); err != nil {
		h.log.Warn("cannot sample processes", "err", err)
		return usage
	}

	// Measure every tree.
	s.round++
	now := time.Now()
	for i, p := range procs {
		place, ok := s.at[p.PID]
		if !ok || p.BootID != h.bootID || s.stats[place].start != p.Start {
			continue
		}
		u, used := s.tree(place)
		u.Mem = float32(100 * float64(u.MemKB) * 1024 / float64(h.mem))
		r := s.share(p, used, now, h.cpus)
		u.CPU, u.UserTime, u.SystemTime = r.cpu, r.user.total, r.sys.total
		u.Cores = u.CPU / 100 * float32(h.cpus)
		usage[i] = u
	}

	// Forget processes that are no longer sampled.
	for p, r := range s.roots {
		if s.round-r.round > 100 {
			delete(s.roots, p)
		}
	}

	return usage
}

// one reads a single process.
func (s *sampler) one(p supervise.Proc) (stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readAll(); err != nil {
		return stat{}, err
	}
	place, ok := s.at[p.PID]
	if !ok || s.stats[place].start != p.Start {
		return stat{}, os.ErrProcessDone
	}
	return s.stats[place], nil
}

// readAll reads all processes and links children to parents.
func (s *sampler) readAll() error {
	// Ask the system for the list.
	if err := s.fillList(); err != nil {
		return err
	}

	// Read each process in it.
	s.stats, s.first, s.next = s.stats[:0], s.first[:0], s.next[:0]
	clear(s.at)
	for at := uintptr(0); at+unsafe.Sizeof(windows.SYSTEM_PROCESS_INFORMATION{}) <= 8*uintptr(len(s.list)); {
		in := (*windows.SYSTEM_PROCESS_INFORMATION)(unsafe.Add(unsafe.Pointer(&s.list[0]), at))
		created := windows.Filetime{LowDateTime: uint32(in.CreateTime), HighDateTime: uint32(in.CreateTime >> 32)}
		s.at[int(in.UniqueProcessID)] = int32(len(s.stats))
		s.stats = append(s.stats, stat{
			pid: int(in.UniqueProcessID), parent: int(in.InheritedFromUniqueProcessID),
			start: uint64(created.Nanoseconds()),
			user:  time.Duration(in.UserTime) * 100, kernel: time.Duration(in.KernelTime) * 100,
			memory: int64(in.WorkingSetSize), handles: int32(in.HandleCount), threads: int(in.NumberOfThreads),
		})
		s.first, s.next = append(s.first, -1), append(s.next, -1)
		if in.NextEntryOffset == 0 {
			break
		}
		at += uintptr(in.NextEntryOffset)
	}

	// Link each child to its parent. A parent that started later is another process with the pid of the parent.
	for i := range s.stats {
		parent, ok := s.at[s.stats[i].parent]
		if ok && parent != int32(i) && s.stats[parent].start <= s.stats[i].start {
			s.next[i], s.first[parent] = s.first[parent], int32(i)
		}
	}

	return nil
}

// fillList asks the system for the list of all processes and enlarges the buffer until the list fits.
func (s *sampler) fillList() error {
	for range 10 {
		var need uint32
		err := windows.NtQuerySystemInformation(windows.SystemProcessInformation, unsafe.Pointer(&s.list[0]),
			uint32(8*len(s.list)), &need)
		if err == nil {
			return nil
		}
		if !errors.Is(err, windows.STATUS_INFO_LENGTH_MISMATCH) {
			return fmt.Errorf("cannot list processes: %w", err)
		}
		s.list = make([]uint64, max(2*len(s.list), int(need)/8+firstSize/4)) // more may start in between
	}
	return errors.New("cannot list processes: the list grows too fast")
}

// tree sums up a process and its descendants.
func (s *sampler) tree(root int32) (u supervise.Usage, used treeTime) {
	s.todo = append(s.todo[:0], root)
	for len(s.todo) > 0 && int(u.Procs) <= len(s.stats) {
		place := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		st := &s.stats[place]
		used.user += st.user
		used.system += st.kernel
		u.MemKB += st.memory >> 10
		u.FD += st.handles
		u.Procs++
		for c := s.first[place]; c >= 0; c = s.next[c] {
			s.todo = append(s.todo, c)
		}
	}

	return u, used
}

// share computes the CPU usage since the previous sample of the same process; the first value is since its start.
// Right after a member left the tree it can be too low, but never negative.
func (s *sampler) share(p supervise.Proc, of treeTime, now time.Time, cpus int) *rootSample {
	used := of.user + of.system
	r := s.roots[p]
	if r == nil {
		r = &rootSample{at: now, used: used, cpu: percent(used, now.Sub(startTime(p.Start)), cpus)}
		s.roots[p] = r
	}

	r.round = s.round
	r.user.add(of.user)
	r.sys.add(of.system)
	if elapsed := now.Sub(r.at); elapsed >= minWindow {
		r.cpu = percent(max(0, used-r.used), elapsed, cpus)
		r.at, r.used = now, used
	}
	return r
}

// percent converts to percent of the whole machine.
func percent(used, over time.Duration, cpus int) float32 {
	if over <= 0 {
		return 0
	}
	return float32(min(100, 100*used.Seconds()/(over.Seconds()*float64(cpus))))
}
