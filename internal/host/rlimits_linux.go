package host

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gozzard/gozzard"
)

// everyUID is the map of user numbers outside of a user namespace. Inside of one, no capability raises a resource limit.
const everyUID = "0 0 4294967295"

// LimitsAbove returns an error for each resource limit that is above what the commands of an agent can have. agent is its pid;
// 0 is this process. A limit that cannot be looked up is left out.
func LimitsAbove(agent int, limits map[string]gozzard.Rlimit) (all []error) {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if err := limitAbove(agent, name, limits[name]); err != nil {
			all = append(all, err)
		}
	}
	return all
}

// limitAbove is LimitsAbove for one limit.
func limitAbove(agent int, name string, l gozzard.Rlimit) error {
	number, known := rlimitNumbers[name]
	var own unix.Rlimit
	if !known || unix.Prlimit(agent, number, nil, &own) != nil {
		return nil
	}
	most, wanted := own.Max, max(rlimitValue(l.Soft), rlimitValue(l.Hard))
	if wanted > most && raisesLimits(agent) {
		most = kernelMost(name)
	}
	if wanted <= most {
		return nil
	}
	return fmt.Errorf("%s %s is above the hard limit %s of the agent: lower rlimits.%s in the definition, or raise Limit%s= in the "+
		"unit of the agent (systemctl edit gozzard-agent) as far as the machine allows, and restart the agent", name, limitText(wanted),
		limitText(most), name, strings.ToUpper(name))
}

// kernelMost is the largest value of a limit for an agent that may raise its own.
func kernelMost(name string) uint64 {
	if name != "nofile" {
		return unix.RLIM_INFINITY
	}
	text, err := os.ReadFile("/proc/sys/fs/nr_open")
	n, parseErr := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	if errors.Join(err, parseErr) != nil {
		return unix.RLIM_INFINITY
	}
	return n
}

// raisesLimits reports whether a process has the capability that raises hard limits.
func raisesLimits(pid int) bool {
	folder := "/proc/self"
	if pid != 0 {
		folder = "/proc/" + strconv.Itoa(pid)
	}
	users, err := os.ReadFile(folder + "/uid_map")
	if err != nil || strings.Join(strings.Fields(string(users)), " ") != everyUID {
		return false
	}
	text, _ := os.ReadFile(folder + "/status") // without it there is no capability
	for line := range strings.Lines(string(text)) {
		if mask, ok := strings.CutPrefix(line, "CapEff:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && n&(1<<unix.CAP_SYS_RESOURCE) != 0
		}
	}
	return false
}

func limitText(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}
