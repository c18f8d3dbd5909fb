package main

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// examine looks at this host.
func examine(string) []finding {
	return []finding{
		checkJobs(),
		{findWarn, "system", "windows: commands run as the agent's account only, stopping needs a command, what processes print is not kept, the system holds no limits"},
	}
}

func checkJobs() finding {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return finding{findFail, "jobs", fmt.Sprintf("no job object can be made (%v): no command of a process can be run", err)}
	}
	_ = windows.CloseHandle(job) // empty, and made just now
	return finding{findOK, "jobs", "what a process starts is found and ended with it"}
}
