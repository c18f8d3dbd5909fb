//go:build linux

package faults_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// definer brings definitions to the record by all doors. A definition is known by its tag and the length of its
// commands.
type definer struct {
	*appCaller
	hosts []ft.J
}

// by brings definitions through a door, the same one for all hosts, and reports whether the quota rejected it.
func (d *definer) by(door, user string, length int, tags ...string) (limited bool, answer string) {
	d.s.t.Helper()
	c := d.as(user)
	status, body := 0, ""
	switch door {
	case "native":
		status, body = c.send(http.MethodPut, "/api/v1/processes", ft.J{"namespace": "gse", "name": tags[0],
			"hosts": nativeHosts(d.hosts), "spec": largeDefinition(tags[0], length)})
	case "start":
		status, body = c.send(http.MethodPost, "/api/v1/operations", ft.J{"action": "start", "namespace": "gse",
			"names": tags[:1], "hosts": nativeHosts(d.hosts), "spec": largeDefinition(tags[0], length)})
	case "multi":
		var items []ft.J
		for _, tag := range tags {
			items = append(items, ft.J{"meta": ft.J{"namespace": "gse", "name": tag}, "op_type": 0, "hosts": d.hosts,
				"spec": largeDefinition(tag, length)})
		}
		status, body = c.send(http.MethodPost, "/api/c/compapi/v2/gse/operate_proc_multi/", ft.J{"proc_operate_req": items})
	case "gateway":
		status, body = c.send(http.MethodPost, "/api/v2/proc/operate_proc_v2", ft.J{"meta": ft.J{"namespace": "gse",
			"name": tags[0]}, "op_type": 0, "hosts": d.hosts, "spec": largeDefinition(tags[0], length)})
	case "job":
		command := largeCommand(tags[0], length)
		status, body = c.send(http.MethodPost, "/api/c/compapi/v2/job/operate_process/", ft.J{"bk_biz_id": 2, "op_type": 0,
			"process_infos": []ft.J{{"setup_path": "/opt", "proc_name": tags[0], "pid_path": "/opt/x.pid", "account": "root",
				"start_cmd": command, "stop_cmd": command, "restart_cmd": command, "reload_cmd": command,
				"kill_cmd": "./kill", "type": 1, "ip_list": d.hosts}}})
	}

	limited = status == http.StatusTooManyRequests || strings.Contains(body, "1306429")
	if limited && (!strings.Contains(body, "of new or changed definitions") || !strings.Contains(body, "1 MiB an hour")) {
		d.s.t.Errorf("%s: the answer does not say which quota: %s", door, body)
	}
	if !limited && (status >= 300 || !strings.Contains(body, "task")) {
		d.s.t.Fatalf("%s: HTTP %d %s", door, status, body)
	}
	return limited, body
}

// mustBring fails the test when the quota rejects definitions.
func (d *definer) mustBring(door, user string, length int, tags ...string) {
	d.s.t.Helper()
	if limited, answer := d.by(door, user, length, tags...); limited {
		d.s.t.Fatalf("%s by %s: %s", door, user, answer)
	}
}

func nativeHosts(hosts []ft.J) (list []ft.J) {
	for _, h := range hosts {
		list = append(list, ft.J{"cloud": 0, "ip": h["ip"]})
	}
	return list
}

// largeCommand is a command of some length.
func largeCommand(tag string, length int) string {
	text := "./run " + tag + " "
	return text + strings.Repeat("x", length-len(text))
}

// largeDefinition is a definition with four commands of some length.
func largeDefinition(tag string, length int) ft.J {
	spec, command := definition(tag), largeCommand(tag, length)
	control := spec["control"].(ft.J)
	for _, name := range []string{"start_cmd", "stop_cmd", "restart_cmd", "reload_cmd"} {
		control[name] = command
	}
	return spec
}

// TestTD20DefinitionsFillTheDisk: an app cannot fill the disk of the server with definitions, which the audit keeps for
// ever. Neither the other doors nor small steps, another user or a restart of the server get around the quota.
// Definitions that did not change are free.
func TestTD20DefinitionsFillTheDisk(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startLimited(t, "--definition-quota=1")
	s.StartSim(t, 3)
	ft.Until(t, 60*1e9, func() string { return "the hosts do not come" }, func() bool {
		_, body := s.Get(t, "/api/v1/hosts")
		return strings.Count(body, `"online":true`) == 3
	})
	hosts := []ft.J{simHost(1), simHost(2), simHost(3)}
	shop := &definer{s.operator("shop"), hosts}
	const length = 16_200 // four times: 65 KB; sixteen such definitions fill the quota

	// Reject what no waiting would help.
	before := recordSize(t, s.Data)
	if limited, answer := shop.by("multi", "ann", length, names("huge", 20)...); !limited ||
		!strings.Contains(answer, "--definition-quota") {
		t.Errorf("more than the quota at once: %s", answer)
	}

	// Spend the quota by all doors, in large and small steps, by two users. Three hosts have the same definition.
	bring := func(round string) {
		shop.mustBring("native", "ann", length, round+"native")
		shop.mustBring("multi", "bob", length, names(round+"multi", 4)...)
		shop.mustBring("gateway", "ann", length, round+"gateway")
		shop.mustBring("job", "bob", length, round+"job")
	}
	bring("a")
	bring("b")
	shop.mustBring("start", "ann", length, "c")
	shop.mustBring("start", "bob", length, "d")

	// Everything is rejected, and the record does not grow by it.
	spent := recordSize(t, s.Data)
	if spent-before < 900<<10 {
		t.Errorf("the record has grown by %d KiB only: the definitions are not in it", (spent-before)>>10)
	}
	above := func(when string) {
		t.Helper()
		for i, door := range []string{"native", "start", "multi", "gateway", "job"} {
			for _, user := range []string{"ann", "bob", "new"} {
				limited, answer := shop.by(door, user, length, fmt.Sprint("e", i, user))
				if !limited || !strings.Contains(answer, "try again in") {
					t.Errorf("%s: %s by %s above the quota: %s", when, door, user, answer)
				}
			}
		}
	}
	above("at once")
	if grown := recordSize(t, s.Data) - spent; grown > 512<<10 {
		t.Errorf("the record grew by %d KiB by what was rejected", grown>>10)
	}

	// What is on record already is free, and so is what brings no definition.
	for range 3 {
		bring("a")
	}
	if status, body := shop.send(http.MethodPost, "/api/v1/operations", ft.J{"action": "restart", "namespace": "gse",
		"names": []string{"anative"}, "hosts": nativeHosts(hosts)}); status != http.StatusAccepted {
		t.Errorf("restart: %d %s", status, body)
	}

	// Other apps have their own quota, and an app with all rights has none.
	other, admin := &definer{s.operator("other"), hosts}, &definer{s.admin(), hosts}
	other.mustBring("multi", "ann", length, names("other", 10)...)
	admin.mustBring("multi", s.Cred.Username, length, names("admin", 40)...)

	s.Kill(syscall.SIGKILL)
	s.Again()
	s.AwaitReady()
	above("after a restart")
}

// TestTD20BusinessesFillTheDisk: the document of a business counts when it changes something.
func TestTD20BusinessesFillTheDisk(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startLimited(t, "--definition-quota=1")
	shop := s.create("shop", ft.Known(t, "app create", "--role=admin", "--biz=2", "--account=root")...)
	apply := func(c *appCaller, word string, length int) (int, string) {
		return c.send(http.MethodPut, "/api/v1/topology/2", business(word, length))
	}

	if status, body := apply(s.admin(), "first", 15_000); status != http.StatusOK { // a limited admin adds no hosts
		t.Fatal(status, body)
	}
	if status, body := apply(shop, "a", 600_000); status != http.StatusOK {
		t.Fatalf("within the quota: %d %s", status, body)
	}
	for range 3 {
		if status, body := apply(shop, "a", 600_000); status != http.StatusOK {
			t.Fatalf("the same document: %d %s", status, body)
		}
	}

	above := func(when string) {
		t.Helper()
		for _, length := range []int{2_000_000, 600_000} {
			if status, body := apply(shop, "b", length); status != http.StatusTooManyRequests ||
				!strings.Contains(body, "1 MiB an hour") {
				t.Errorf("%s: %d bytes above the quota: %d %s", when, length, status, body)
			}
		}
	}
	above("at once")
	if status, body := apply(s.admin(), "c", 2_000_000); status != http.StatusOK {
		t.Errorf("an app with all rights: %d %s", status, body)
	}

	s.Kill(syscall.SIGKILL)
	s.Again()
	s.AwaitReady()
	above("after a restart")
}

// business is a document with about so many bytes of commands.
func business(word string, length int) ft.J {
	var processes []ft.J
	for i := range length / 15_000 {
		processes = append(processes, ft.J{"id": i + 1, "name": fmt.Sprint("p", i), "work_path": "/opt", "user": "root",
			"pid_file": "/opt/p.pid", "start_cmd": largeCommand(word, 15_000)})
	}
	return ft.J{"biz": 2, "name": "shop", "sets": []ft.J{{"id": 1, "name": "s", "env": 3, "modules": []ft.J{{"id": 1,
		"name": "m", "instances": []ft.J{{"id": 1, "name": "i", "host": ft.J{"ip": "127.1.1.1", "cloud": 0},
			"processes": processes}}}}}}}
}
