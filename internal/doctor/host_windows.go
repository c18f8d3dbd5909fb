package doctor

import (
	"fmt"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard/internal/host"
)

// examine looks at this host.
func examine(_ string, own host.Privileges) []Finding {
	return []Finding{
		{Warn, "mode", "user, as " + own.Account + ": commands run as this account only"},
		checkJobs(),
		{Warn, "system",
			"windows: stopping needs a command, what processes print is not kept, the system holds no limits"},
	}
}

func checkJobs() Finding {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return Finding{Fail, "jobs",
			fmt.Sprintf("no job object can be made (%v): no command of a process can be run", err)}
	}
	_ = windows.CloseHandle(job) // empty, and made just now
	return Finding{OK, "jobs", "what a process starts is found and ended with it"}
}
