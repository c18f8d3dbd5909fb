//go:build linux

package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// BootID identifies the current boot of the machine.
func (f FS) BootID() (string, error) {
	b, err := f.file("sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("cannot read the boot id: %w", err)
	}

	id := strings.TrimSpace(string(b))
	if id == "" {
		return "", errors.New("cannot read the boot id: the file is empty")
	}
	return id, nil
}

// MemTotal is the memory of the machine in bytes.
func (f FS) MemTotal() (int64, error) {
	n, err := f.meminfo("MemTotal:")
	if err == nil && n == 0 {
		err = errors.New("cannot read the memory size: meminfo says 0")
	}
	return n, err
}

// MemAvailable is the memory in bytes that programs could still get. Linux 3.14 and newer report it.
func (f FS) MemAvailable() (int64, error) { return f.meminfo("MemAvailable:") }

// meminfo reads one line of /proc/meminfo, in bytes.
func (f FS) meminfo(name string) (int64, error) {
	b, err := f.file("meminfo")
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory size: %w", err)
	}

	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB"), 10, 53)
			if err != nil || kb < 0 {
				break
			}
			return kb << 10, nil
		}
	}

	return 0, fmt.Errorf("cannot read the memory size: meminfo has no readable %s", strings.TrimSuffix(name, ":"))
}

// Load is the load average of the last minute in thousandths, over all processors.
func (f FS) Load() (int64, error) {
	b, err := f.file("loadavg")
	if err != nil {
		return 0, fmt.Errorf("cannot read the load: %w", err)
	}

	first, _, _ := strings.Cut(string(b), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil || !(load >= 0 && load < 1e9) {
		return 0, fmt.Errorf("cannot read the load: loadavg begins with %q", first)
	}
	return int64(math.Round(load * 1000)), nil
}

// CPUs counts the processors of the machine, not only those that this program may use.
func (f FS) CPUs() (int, error) {
	b, err := f.file("stat")
	if err != nil {
		return 0, fmt.Errorf("cannot count processors: %w", err)
	}

	n := 0
	for line := range bytes.Lines(b) {
		if len(line) > 3 && string(line[:3]) == "cpu" && line[3] >= '0' && line[3] <= '9' {
			n++
		}
	}

	if n == 0 {
		return 0, errors.New("cannot count processors: stat has none")
	}
	return n, nil
}

// Cgroup2Mount returns the folder where cgroup v2 is mounted, or "" if it is not. On machines with both versions that
// is not /sys/fs/cgroup.
func (f FS) Cgroup2Mount() (string, error) {
	b, err := f.file("self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("cannot read mounts: %w", err)
	}

	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(line, " - ")
		if !ok || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		if fields := strings.Fields(before); len(fields) >= 5 {
			return unescape(fields[4]), nil
		}
	}

	return "", nil
}

// Cgroup1Mounts returns the folders where controllers of cgroup v1 are mounted, by controller.
func (f FS) Cgroup1Mounts() (map[string]string, error) {
	b, err := f.file("self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot read mounts: %w", err)
	}

	mounts := map[string]string{}
	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 3 || kind[0] != "cgroup" {
			continue
		}
		// The options of the file system include the controllers.
		for option := range strings.SplitSeq(kind[2], ",") {
			mounts[option] = unescape(fields[4])
		}
	}

	return mounts, nil
}

// unescape decodes the octal escapes of mountinfo for blanks, tabs, line breaks and backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}

	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}

	return b.String()
}
