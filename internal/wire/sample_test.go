package wire_test

import (
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
)

func opID(n byte) gozzard.OpID {
	var id gozzard.OpID
	for i := range id {
		id[i] = n + byte(i)
	}
	return id
}

// joined is all samples of several lists.
func joined[T any](lists ...map[string]T) map[string]T {
	all := map[string]T{}
	for _, list := range lists {
		maps.Copy(all, list)
	}
	return all
}

// commands has one command of each kind, with every field of the domain types set somewhere.
func commands() map[string]*gozzard.Command {
	return joined(operateCommands(), otherCommands())
}

func operateCommands() map[string]*gozzard.Command {
	spec := &gozzard.Spec{Identity: gozzard.Identity{ProcName: "nginx", PIDPath: "/run/nginx.pid"},
		Policy: gozzard.DefaultPolicy()}
	return map[string]*gozzard.Command{
		"operate": {Version: 1, Kind: gozzard.CommandOperate, Session: 7, Ops: []gozzard.Op{
			{
				ID: opID(1), Ref: gozzard.AttemptRef{Task: 42, Index: 3}, Gen: 42, Action: gozzard.ActionStart,
				Key:    gozzard.Key{Namespace: "gsekit", Name: "nginx-1"},
				Labels: map[string]string{"biz": "2", "": "", "zone": "深圳"},
				Spec:   gozzard.EncodeSpec(spec),
			},
			{ID: opID(2), Ref: gozzard.AttemptRef{Task: -1, Index: -9}, Action: gozzard.ActionQuery},
			{},
		}},
		"operate-adopt": {Version: 1, Kind: gozzard.CommandOperate, Session: 7, Ops: []gozzard.Op{
			{ID: opID(1), Gen: 43, Action: gozzard.ActionStart, Key: gozzard.Key{Namespace: "gse", Name: "web"},
				Adopt: true},
		}},
		"operate-account": {Version: 1, Kind: gozzard.CommandOperate, Session: 7, Ops: []gozzard.Op{
			{ID: opID(1), Gen: 44, Action: gozzard.ActionStop, Key: gozzard.Key{Namespace: "gse", Name: "web"},
				Account: "shop"},
		}},
		"operate-trace": {Version: 1, Kind: gozzard.CommandOperate, Session: 7, Ops: []gozzard.Op{
			{ID: opID(1), Gen: 45, Action: gozzard.ActionStop, Key: gozzard.Key{Namespace: "gse", Name: "web"},
				Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		}},
	}
}

func otherCommands() map[string]*gozzard.Command {
	return map[string]*gozzard.Command{
		"welcome": {Version: 1, Kind: gozzard.CommandWelcome, Session: 7, Interval: 30 * time.Second},
		"greet":   {Version: 1, Kind: gozzard.CommandGreet, Session: 1 << 63},

		"cancel": {Version: 1, Kind: gozzard.CommandCancel, Session: 7, Cancel: []gozzard.OpID{opID(3), {}, opID(4)}},
		"ack": {Version: 1, Kind: gozzard.CommandAck, Session: 7, Acked: []gozzard.OpID{opID(5)}, AckRound: 11,
			Beat: 12},

		"groups": {Version: 1, Kind: gozzard.CommandGroups, Session: 7, Groups: []gozzard.Group{
			{Namespace: "gse", ID: "pool", CPULimit: 12.5, MemLimit: 30, CPUWeight: 1, MemWeight: -1}, {},
		}},
		"logs": {Version: 1, Kind: gozzard.CommandLogs, Session: 7, Logs: &gozzard.LogQuery{
			ID: opID(7), Key: gozzard.Key{Namespace: "gse", Name: "网关"}, Lines: 100, Offset: -1, Max: 64 << 10,
		}},
		"file": {Version: 1, Kind: gozzard.CommandFile, Session: 7, File: &gozzard.FileQuery{
			ID: opID(7), Key: gozzard.FileKey("shop", "/etc/shop/web.conf"), Path: "/etc/shop/web.conf", Account: "shop",
			Kept: gozzard.FileDigest([]byte("a")), List: true, Offset: 65536, Max: 4096,
		}},
		"content": {Version: 1, Kind: gozzard.CommandContent, Session: 7, Content: &gozzard.ContentPart{
			Op: opID(9), SHA256: gozzard.FileDigest([]byte("a")), Offset: 262144, Data: []byte("a = 1"),
			Sum: gozzard.PartSum([]byte("a = 1")), Error: "gone",
		}},
		"history": {Version: 1, Kind: gozzard.CommandHistory, Session: 7, History: &gozzard.HistoryQuery{
			ID: opID(7), Key: gozzard.Key{Namespace: "gse", Name: "网关"}, From: 1700000000, To: 1700086400, Points: 300,
		}},

		"update": {Version: 1, Kind: gozzard.CommandUpdate, Session: 7, Update: &gozzard.UpdateOrder{
			Roll: 3, Version: "1.2.3-rc.1", Manifest: [32]byte{1, 2, 3, 31: 0xff},
		}},
		"welcome-servers": {Version: 1, Kind: gozzard.CommandWelcome, Session: 7, Interval: 30 * time.Second, Beat: 1 << 60,
			Servers: []gozzard.ServerAddress{{Agents: "10.0.0.1:4230", API: "https://10.0.0.1:8443"},
				{Agents: "[2001:db8::1]:4230"}, {}}},
		"ack-next":  {Version: 1, Kind: gozzard.CommandAck, Session: 7, Beat: 12, NextBeat: 9250 * time.Millisecond},
		"ackevents": {Version: 1, Kind: gozzard.CommandAck, Session: 7, AckEvents: 1 << 40},
	}
}

// journal is the position of the journal in the samples.
var journal = gozzard.JournalPos{ID: opID(9), LSN: 77}

// reports has one report of each kind, with every field of the domain types set somewhere.
func reports() map[string]*gozzard.Report {
	return joined(helloReports(), resultReports(), statusReports(), otherReports())
}

func helloReports() map[string]*gozzard.Report {
	return map[string]*gozzard.Report{
		"hello": {Version: 1, Kind: gozzard.ReportHello, Session: 8, Journal: journal, Hello: &gozzard.Hello{
			Host: gozzard.HostInfo{
				Agent: "0a1b", Hostname: "web-1", OS: "linux", Arch: "amd64", Version: "0.1.0", BootID: "b00t",
				StartedAt: 1700000000, CPUs: 8,
				MemBytes: 32 << 30, Degraded: []string{"no cgroup v2", ""}, Mode: gozzard.ModeCap,
				Addrs: []gozzard.HostAddr{
					{Cloud: 1, IP: netip.MustParseAddr("10.0.0.1")}, {IP: netip.MustParseAddr("2001:db8::1")},
					{Cloud: -3},
				},
			},
			Open: []gozzard.OpReport{{ID: opID(6), Ref: gozzard.AttemptRef{Task: 5, Index: 1},
				Phase: gozzard.PhaseBegun}, {}},
			Kept: true,
		}},

		"hello-newest": {Version: 1, Kind: gozzard.ReportHello, Session: 9, Journal: journal, Hello: &gozzard.Hello{
			Run: 1 << 60, NewestGen: 1<<40 + 17,
		}},
	}
}

func resultReports() map[string]*gozzard.Report {
	return map[string]*gozzard.Report{
		"results": {Version: 1, Kind: gozzard.ReportResults, Session: 8, Journal: journal, Results: []gozzard.OpReport{
			{
				ID: opID(1), Ref: gozzard.AttemptRef{Task: 42, Index: 3}, Phase: gozzard.PhaseDone,
				Outcome: gozzard.Outcome{Code: gozzard.CodeCommandFailed, Message: "exit status 3\nno such file",
					Hosted: true, Forced: true},
			},
			{ID: opID(2), Phase: gozzard.PhaseDone, Outcome: gozzard.Outcome{Code: gozzard.CodeOK,
				Detail: &gozzard.Detail{
					PID: -1, Hosted: true, Cmdline: "nginx -g 'daemon off;'", Version: "1.27", Health: "ok", CPU: 0.1,
					CPUAvg: 1e-9, Mem: 12.5,
					MemKB: 123456, Stat: "S", UTime: 1, STime: 2, Threads: 3, StartedAt: 4, Elapsed: 5, RegisteredAt: 6,
					LastStart: 7, ReportedAt: 8,
					ZoneOffset: -3600,
				}}},
			{ID: opID(3), Phase: gozzard.PhaseDone, Outcome: gozzard.Outcome{Detail: &gozzard.Detail{}}},
			{ID: opID(4), Phase: gozzard.PhaseNever},
		}},

		"results-script": {Version: 1, Kind: gozzard.ReportResults, Session: 8, Journal: journal, Results: []gozzard.OpReport{
			{ID: opID(1), Ref: gozzard.AttemptRef{Task: 42}, Phase: gozzard.PhaseDone, Outcome: gozzard.Outcome{
				Code: gozzard.CodeCommandFailed, Message: "step 1: it ended with exit code 3", Script: &gozzard.ScriptResult{
					Steps: []gozzard.StepResult{
						{ID: 0, State: gozzard.StepOK, Output: "网关\n", LeftOut: 17, Began: 1700000000000, Ended: 1700000000123},
						{ID: 1, State: gozzard.StepFailed, Exit: -1, Message: "it ended with exit code 3"},
					}}}},
		}},

		"results-file": {Version: 1, Kind: gozzard.ReportResults, Session: 8, Journal: journal, Results: []gozzard.OpReport{
			{ID: opID(1), Ref: gozzard.AttemptRef{Task: 42}, Phase: gozzard.PhaseNever, Outcome: gozzard.Outcome{
				Code: gozzard.CodeRefused, Message: "file /etc/web.conf has changed on the host",
				File: gozzard.FileResult{Code: gozzard.FileChanged, SHA256: gozzard.FileDigest([]byte("by hand\n"))}}},
		}},

		"results-held": {Version: 1, Kind: gozzard.ReportResults, Session: 8, Journal: journal, Results: []gozzard.OpReport{
			{ID: opID(1), Ref: gozzard.AttemptRef{Task: 42}, Phase: gozzard.PhaseBegun, Held: 1234567 * time.Microsecond},
		}},
		"results-trace": {Version: 1, Kind: gozzard.ReportResults, Session: 8, Journal: journal, Results: []gozzard.OpReport{
			{ID: opID(1), Ref: gozzard.AttemptRef{Task: 42}, Phase: gozzard.PhaseDone, Held: 30 * time.Millisecond,
				Waited: 4 * time.Millisecond, Ran: 20 * time.Millisecond, Outcome: gozzard.Outcome{Code: gozzard.CodeOK}},
		}},
	}
}

func statusReports() map[string]*gozzard.Report {
	return map[string]*gozzard.Report{
		"status": statusReport(3),
		"status-full": {Version: 1, Kind: gozzard.ReportStatus, Session: 8, Statuses: []gozzard.Status{
			{
				Key: gozzard.Key{Namespace: "gse", Name: "网关"}, State: gozzard.StateStopped,
				Condition: gozzard.ConditionCrashLoop, Kind: gozzard.ShownResident, Restarts: 1 << 31, NextAt: 1700000000123,
				Exit: gozzard.Ending{At: 1700000000001, Known: true, Code: -7, Core: true},
			},
			{
				Key: gozzard.Key{Namespace: "gse", Name: "night"}, State: gozzard.StateRunning, MemBytes: 1 << 40,
				Condition: gozzard.ConditionUnhealthy, Kind: gozzard.ShownPeriodic, Health: gozzard.HealthFailing,
				HealthMessage: "refused", Exit: gozzard.Ending{Signal: "SIGKILL", OOM: true},
				LastRun: gozzard.LastRun{StartedAt: 1700000000002, End: gozzard.Ending{At: 3, Known: true}},
			},
			{LastRun: gozzard.LastRun{StartedAt: 5}},
		}},

		"heartbeat": {Version: 1, Kind: gozzard.ReportHeartbeat, Session: 8, Journal: journal, Beat: 99},
		"heartbeat-vitals": {Version: 1, Kind: gozzard.ReportHeartbeat, Session: 8, Journal: journal, Beat: 100,
			Vitals: &gozzard.Vitals{At: 1700000000123, RoundTrip: 450, Load: 12_340, MemFree: 1 << 33}},
		"heartbeat-unmeasured": {Version: 1, Kind: gozzard.ReportHeartbeat, Session: 8, Journal: journal, Beat: 101,
			Vitals: &gozzard.Vitals{At: -5, RoundTrip: gozzard.NotMeasured, MemFree: gozzard.NotMeasured}},
	}
}

func otherReports() map[string]*gozzard.Report {
	return map[string]*gozzard.Report{
		"events": {Version: 1, Kind: gozzard.ReportEvents, Session: 8, Journal: journal, Events: []gozzard.Event{
			{
				Seq: 5, Key: gozzard.Key{Namespace: "gse", Name: "网关"}, Kind: gozzard.EventExited, At: 1700000000123,
				PID: 77, Code: -1, Signal: "SIGSEGV",
				Core: true, Message: "ended by SIGSEGV",
			},
			{Seq: 6, Kind: gozzard.EventLimitExceeded}, {},
		}},
		"events-cause": {Version: 1, Kind: gozzard.ReportEvents, Session: 8, Journal: journal, Events: []gozzard.Event{
			{
				Seq: 7, Key: gozzard.Key{Namespace: "gse", Name: "web"}, Kind: gozzard.EventExited, At: 1700000000123,
				PID: 77, Known: true, Message: "exited with 0",
				Cause: gozzard.Cause{Op: opID(3), Ref: gozzard.AttemptRef{Task: 42, Index: 7}},
			},
		}},

		"update": {Version: 1, Kind: gozzard.ReportUpdate, Session: 8, Journal: journal, Update: &gozzard.UpdateReport{
			Roll: 3, Version: "1.2.3-rc.1", State: gozzard.UpdateRolledBack, Reason: "not welcomed within 1m0s",
		}},

		"history": {Version: 1, Kind: gozzard.ReportHistory, Session: 8, Journal: journal, History: &gozzard.History{
			ID: opID(7), From: 1700000000, Step: 300, Error: "cut", Points: []gozzard.HistoryPoint{
				{CPU: 1234, Mem: 1 << 33, FD: 42, Restarts: 1}, {}, gozzard.EmptyPoint(),
				{CPU: gozzard.NotMeasured, Mem: gozzard.NotMeasured, FD: gozzard.NotMeasured, Restarts: 7},
			},
		}},
		"file": {Version: 1, Kind: gozzard.ReportFile, Session: 8, Journal: journal, File: &gozzard.FileAnswer{
			ID: opID(7), Offset: 65536, Error: "cut",
			View: gozzard.FileView{Exists: true, Owner: "shop", Group: "www", Mode: "0640", Size: 65541,
				SHA256: gozzard.FileDigest([]byte("a")), Changed: 1700000000123, Content: []byte("a = 1")},
			Versions: []gozzard.FileVersion{{At: 1700000000000, SHA256: gozzard.FileDigest([]byte("b")),
				Size: 1, Owner: "shop", Group: "www", Mode: "0644", Task: 17}},
		}},
		"content": {Version: 1, Kind: gozzard.ReportContent, Session: 8, Journal: journal, Content: &gozzard.ContentQuery{
			Op: opID(9), SHA256: gozzard.FileDigest([]byte("a")), Offset: 262144,
		}},
		"hello-files": {Version: 1, Kind: gozzard.ReportHello, Session: 9, Hello: &gozzard.Hello{
			Run: 3, Host: gozzard.HostInfo{Agent: "0a1b", Files: true},
		}},
		"hello-metrics": {Version: 1, Kind: gozzard.ReportHello, Session: 9, Hello: &gozzard.Hello{
			Run: 3, Host: gozzard.HostInfo{Agent: "0a1b", Metrics: "https://10.0.0.1:9436"},
		}},
		"hello-history": {Version: 1, Kind: gozzard.ReportHello, Session: 9, Hello: &gozzard.Hello{
			Run: 3, Host: gozzard.HostInfo{Agent: "0a1b", History: true},
		}},

		"logs": {Version: 1, Kind: gozzard.ReportLogs, Session: 8, Journal: journal, Logs: &gozzard.LogChunk{
			ID: opID(7), Data: []byte("line\n\xff\x00"), Offset: 4096, Next: 4103, Error: "cut",
		}},
	}
}

// statusReport is a part of a full report about n processes, as a host of that size sends it.
func statusReport(n int) *gozzard.Report {
	r := &gozzard.Report{Version: 1, Kind: gozzard.ReportStatus, Session: 8, Round: 4, Part: 1, Parts: 2}
	for i := range n {
		r.Statuses = append(r.Statuses, gozzard.Status{
			Key:    gozzard.Key{Namespace: "gsekit", Name: fmt.Sprintf("worker-%04d", i)},
			Labels: map[string]string{"proc_name": "worker", "bk_process_id": fmt.Sprint(1000 + i)},
			Wanted: gozzard.StateRunning, State: gozzard.StateStopped, Hosted: true, PID: int32(i) - 1,
			Version: "2.4.1", Message: "stopped by hand",
			RegisteredAt: 1700000000, StartedAt: 1700000100, ReportedAt: 1700003600, CPU: 1.25, Mem: 0.5, FD: 64,
			Disk: 1 << 40, Net: -1,
		})
	}

	r.Removed = []gozzard.Key{{Namespace: "gsekit", Name: "gone"}, {}}
	return r
}
