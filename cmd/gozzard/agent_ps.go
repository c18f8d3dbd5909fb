package main

import (
	"context"
	"strconv"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/agentsock"
)

// agentPs is `gozzard agent ps`.
func (env *cliEnv) agentPs(ctx context.Context, c *agentsock.Client, o *outputFlag) error {
	found, err := c.Processes(ctx)
	if err != nil {
		return err
	}
	if o.structured() {
		return o.write(env.out, newAgentProcesses(found))
	}
	if found.Count == 0 {
		env.remark("the agent has no process")
		return nil
	}

	// Make the table, with the columns of `gozzard ps`.
	wide := o.format == "wide"
	header := []string{"NAMESPACE", "NAME", "STATE", "PID", "RESTARTS", cpuHeader, "MEM", "SINCE"}
	if wide {
		header = append(header, "NEXT", "MANAGED", "VERSION", "WANTED", "FD")
	}
	t := newTable(append(header, "MESSAGE")...)
	for i := range found.Processes {
		p := &found.Processes[i]
		used := client.Process{PID: p.PID, CPU: p.CPU, Mem: p.Mem, MemBytes: p.MemBytes, FD: p.FD}
		cells := []string{p.Namespace, p.Name, stateWords(p.State), "", strconv.Itoa(p.Restarts), "", "",
			age(env.now(), p.Since)}
		if p.PID > 0 {
			cells[3], cells[5], cells[6] = strconv.Itoa(int(p.PID)), cpuText(&used), memText(&used)
		}
		if wide {
			cells = append(cells, until(env.now(), client.MilliTime(p.NextAt).Time), yesNo(p.Hosted), p.Version, p.Wanted,
				fdText(&used))
		}
		t.add(append(cells, p.Message)...)
	}

	// Print it. The agent sends at most one page.
	if err := t.write(env.out); err != nil {
		return err
	}
	if n := len(found.Processes); n < found.Count {
		env.remark("%d of %d processes", n, found.Count)
	}

	return nil
}
