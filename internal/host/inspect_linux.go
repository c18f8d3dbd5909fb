package host

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/procfs"
	"github.com/gozzard/gozzard/internal/supervise"
)

// Inspect reads what a query reports about one process in addition to the usage of its tree, which Sample measures.
// For a process that ended it returns os.ErrProcessDone.
func (h *Host) Inspect(p supervise.Proc) (gozzard.Detail, error) {
	// Reject a process that has ended.
	d := gozzard.Detail{PID: -1}
	if !h.Alive(p) {
		return d, fmt.Errorf("cannot inspect pid %d: %w", p.PID, os.ErrProcessDone)
	}

	// Read the arguments, then the numbers: the same start time proves that both belong to the process.
	args, err := h.proc.Args(p.PID, 2*cmdlineBytes)
	if err != nil && !errors.Is(err, procfs.ErrGone) {
		return d, fmt.Errorf("cannot inspect pid %d: %w", p.PID, err)
	}
	st, err := h.proc.Stat(p.PID)
	if err != nil || st.Start != p.Start || st.Dead() {
		return d, fmt.Errorf("cannot inspect pid %d: %w", p.PID, os.ErrProcessDone)
	}

	// Compute its age.
	boot, err := bootTime()
	if err != nil {
		return d, fmt.Errorf("cannot inspect pid %d: %w", p.PID, err)
	}
	now, started := time.Now(), boot.Add(ticks(st.Start))
	_, zone := now.Zone()
	age := max(0, now.Sub(started))

	// Convert to the units of the answer.
	d = gozzard.Detail{
		PID: p.PID, Cmdline: cleanCmdline(args), Stat: string(rune(st.State)), Threads: st.Threads,
		UTime: int64(ticks(st.UTime).Seconds()), STime: int64(ticks(st.STime).Seconds()),
		CPUAvg: float64(percent(st.UTime+st.STime, age, h.cpus)), MemKB: st.RSS * h.pageSize >> 10,
		StartedAt: started.Unix(), Elapsed: int64(age.Seconds()), ZoneOffset: zone,
	}
	d.Mem = 100 * float64(d.MemKB) * 1024 / float64(h.mem)
	if d.Cmdline == "" {
		d.Cmdline = "[" + cleanCmdline([]string{st.Comm()}) + "]"
	}

	return d, nil
}
