package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard/client"
)

// processTable is the table of processes.
func (env *cliEnv) processTable(rows []client.Process, wide bool, p painter) *textTable {
	next := wide || anyNext(rows)
	header := append([]string{"NAMESPACE", "NAME", "HOST"}, liveHeader(next)...)
	if wide {
		header = append(header, "MANAGED", "VERSION", "WANTED", "FD", "REPORTED", "AGENT", "LABELS", "MESSAGE")
	}

	t := newTable(header...)
	for i := range rows {
		r := &rows[i]
		cells := append([]string{r.Namespace, r.Name, processHost(r)}, env.liveCells(r, next)...)
		if wide {
			cells = append(cells, yesNo(r.Managed), r.Version, r.Wanted, fdText(r),
				ago(since(env.now(), r.ReportedAt.Time)), string(r.Host.Agent), labelText(r.Labels), env.said(r.Message))
		}
		t.addDecorated(paintState(r, 3, p), cells...)
	}

	return t
}

// instanceTable is the table of the processes of a business, with a row for each instance.
func (env *cliEnv) instanceTable(rows []client.Process, wide bool, p painter) *textTable {
	next := wide || anyNext(rows)
	header := append([]string{"SET", "MODULE", "PROCESS", "ID", "HOST"}, liveHeader(next)...)
	if wide {
		header = append(header, "MANAGED", "ENV", "SERVICE", "INST", "PRIORITY", "VERSION", "WANTED", "FD", "REPORTED",
			"AGENT", "MESSAGE")
	}

	t := newTable(header...)
	for i := range rows {
		r, at := &rows[i], rows[i].Topology
		if at == nil { // from a server without businesses
			at = &client.Place{}
		}
		cells := append([]string{at.SetName, at.ModuleName, r.Name, strconv.Itoa(at.Process), processHost(r)},
			env.liveCells(r, next)...)
		if wide {
			cells = append(cells, yesNo(r.Managed), envText(at.Env), at.ServiceName, strconv.Itoa(at.Inst),
				strconv.Itoa(at.Priority), r.Version, r.Wanted, fdText(r),
				ago(since(env.now(), r.ReportedAt.Time)), string(r.Host.Agent), env.said(r.Message))
		}
		t.addDecorated(paintState(r, 5, p), cells...)
	}

	return t
}

// cpuHeader names the unit: percent of the host. The console and `gozzard chart` have percent of one core.
const cpuHeader = "CPU(HOST)"

// liveHeader is the header of liveCells.
func liveHeader(next bool) []string {
	h := []string{"STATE", "PID", "RESTARTS", cpuHeader, "MEM", "UPTIME"}
	if next {
		h = append(h, "NEXT")
	}
	return h
}

// liveCells are the cells with the live status of a process. Only a process that is up has a pid and measurements.
func (env *cliEnv) liveCells(p *client.Process, next bool) []string {
	cells := []string{stateText(p), "", strconv.Itoa(p.Restarts), "", "", ""}
	if isUp(p) {
		cells[1], cells[3], cells[4] = strconv.Itoa(int(p.PID)), cpuText(p), memText(p)
		cells[5] = since(env.now(), p.StartedAt.Time)
	}
	if next {
		cells = append(cells, until(env.now(), p.NextAt.Time))
	}
	return cells
}

// anyNext reports whether one of the processes has a next start or run.
func anyNext(rows []client.Process) bool {
	return slices.ContainsFunc(rows, func(p client.Process) bool { return !p.NextAt.IsZero() })
}

// paintState paints the cell with the state of a process.
func paintState(r *client.Process, at int, p painter) func(int, string) string {
	return func(i int, cell string) string {
		if i == at {
			return p.paint(viewState(r.State).colour, cell)
		}
		return cell
	}
}

// isMeasured reports whether the agent has measured a process that is up. It does so some time after the start, and
// every process has memory.
func isMeasured(p *client.Process) bool { return p.MemBytes > 0 || p.Mem > 0 || p.CPU > 0 }

// cpuText is the CPU of a process, "" if it is not measured yet.
func cpuText(p *client.Process) string {
	if !isMeasured(p) {
		return ""
	}
	return percent(p.CPU) + "%"
}

// memText is the memory of a process, "" if it is not measured yet. Agents of earlier versions report only its share of
// the machine.
func memText(p *client.Process) string {
	switch {
	case p.MemBytes > 0:
		return mebibytes(p.MemBytes)
	case p.Mem > 0:
		return percent(p.Mem) + "%"
	}
	return ""
}

// fdText is the number of open files of a process, "" if it is not measured.
func fdText(p *client.Process) string {
	if !isUp(p) || !isMeasured(p) {
		return ""
	}
	return strconv.Itoa(int(p.FD))
}

// mebibytes is a number of bytes in MiB.
func mebibytes(n int64) string {
	mib := float64(n) / (1 << 20)
	if mib >= 1000 {
		return fmt.Sprintf("%.0f MiB", mib)
	}
	return fmt.Sprintf("%.1f MiB", mib)
}

// since is how long ago a time was. A time that is not known gives "".
func since(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return shortDuration(now.Sub(t))
}

// until is when a time will be, such as "in 12s". A time that is not known gives "".
func until(now, t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Sub(now) < time.Second:
		return "now"
	}
	return "in " + shortDuration(t.Sub(now))
}

// hostName is cloud:ip, or the agent id of a host without a known address.
func hostName(cloud int, ip, agent string) string {
	if ip == "" {
		return agent
	}
	return strconv.Itoa(cloud) + ":" + ip
}

// refName is the name of a host of an answer.
func refName(h client.HostRef) string { return hostName(h.Cloud, h.IP, string(h.Agent)) }

func labelText(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}

func ago(s string) string {
	if s == "" {
		return "never"
	}
	return s + " ago"
}
