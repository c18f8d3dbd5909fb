package main

import (
	"fmt"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard/internal/host"
)

// examine looks at this host.
func examine(_ string, own host.Privileges) []finding {
	return []finding{
		{findWarn, "mode", "user, as " + own.Account + ": commands run as this account only"},
		checkJobs(),
		{findWarn, "system",
			"windows: stopping needs a command, what processes print is not kept, the system holds no limits"},
	}
}

func checkJobs() finding {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return finding{findFail, "jobs",
			fmt.Sprintf("no job object can be made (%v): no command of a process can be run", err)}
	}
	_ = windows.CloseHandle(job) // empty, and made just now
	return finding{findOK, "jobs", "what a process starts is found and ended with it"}
}
