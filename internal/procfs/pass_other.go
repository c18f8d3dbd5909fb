//go:build !linux

package procfs

// PIDs appends the ids of all processes to dst.
func (p *Pass) PIDs(dst []int) ([]int, error) { return p.fs.PIDs(dst) }

// Stat reads /proc/<pid>/stat.
func (p *Pass) Stat(pid int) (Stat, error) { return p.fs.StatInto(pid, p.line[:]) }

// CountFDs counts the open descriptors of a process.
func (p *Pass) CountFDs(pid int) (int, error) { return p.fs.FDs(pid) }

// FDs only counts the descriptors: this system does not show what they are.
func (p *Pass) FDs(pid, _ int, _ *[]FD) (int, error) { return p.fs.FDs(pid) }
