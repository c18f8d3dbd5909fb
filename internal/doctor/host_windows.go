package doctor

import (
	"fmt"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard/internal/host"
)

// examine checks this host.
func examine(_ string, own host.Privileges) []Finding {
	return []Finding{
		{Warn, "mode", "user, as " + own.Account + ": commands run as this account only"},
		checkJobs(),
		{Warn, "system",
			"windows: stopping needs a command, the output of processes is not kept, the system enforces no limits"},
	}
}

func checkJobs() Finding {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return Finding{Fail, "jobs",
			fmt.Sprintf("cannot make a job object (%v), which every command of a process needs", err)}
	}
	_ = windows.CloseHandle(job) // empty, and made just now
	return Finding{OK, "jobs", "available: child processes are found and killed with their process"}
}
