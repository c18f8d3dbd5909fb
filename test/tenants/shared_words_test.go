//go:build linux

package tenants_test

import (
	"fmt"
	"path/filepath"
	"strings"
)

// sharedWords are what the requests of one tenant of the shared host name. A plain request names what the tenant has
// itself. Any other mixes in what belongs to others: names, hosts, accounts, pid files, folders, tasks, and links.
type sharedWords struct {
	*maker
	fleet *shared
	me    *party
	plain bool
	mark  string // in the commands of the request
}

// whose is the tenant that the next word is about.
func (w *sharedWords) whose() *party {
	if w.plain || w.IntN(3) == 0 {
		return w.me
	}
	return pick(w.maker, w.fleet.g.parties[:3]...)
}

func (w *sharedWords) hostOf(p *party) int { return p.hosts[w.IntN(len(p.hosts))] }

func (w *sharedWords) agent() string {
	if !w.plain && w.IntN(9) == 0 {
		return "host-none"
	}
	return w.fleet.agentIDs[w.hostOf(w.whose())]
}

func (w *sharedWords) ip() string {
	if !w.plain && w.IntN(9) == 0 {
		return "127.0.0.77"
	}
	return fmt.Sprint("127.0.0.", w.hostOf(w.whose()))
}

func (w *sharedWords) network() string { return pick(w.maker, "127.0", w.ip(), "default") }

func (w *sharedWords) namespace() string {
	if !w.plain && w.IntN(12) == 0 {
		return pick(w.maker, "gse", "other", w.fleet.g.parties[0].name, w.fleet.g.parties[1].name)
	}
	return fmt.Sprintf("%s_BIZ_%d", pick(w.maker, "JOB", "JOB", "GSEKIT"), w.whose().biz)
}

// name is that of a process that tenants keep, or one of those that come and go.
func (w *sharedWords) name() string {
	return pick(w.maker, "x", "y", "z", "v-api", "v-gse", "v-gateway", "v-own", "java_1", "life_1")
}

func (w *sharedWords) biz() int { return w.whose().biz }

func (w *sharedWords) task() string {
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	var list []string
	for _, id := range w.fleet.tasks {
		if p := w.fleet.madeBy[id]; !w.plain || p == w.me {
			list = append(list, id)
		}
	}
	if len(list) == 0 {
		return "GSETASK:20260701020304:999999"
	}
	return pick(w.maker, list...)
}

func (w *sharedWords) job() int {
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	return 1 + w.IntN(w.fleet.lastJob+1)
}

func (w *sharedWords) person() string {
	return pick(w.maker, "shop", "pay", "vault", "shop-boss", "pay-boss", "admin")
}

func (w *sharedWords) definition() string {
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	if len(w.fleet.digests) == 0 {
		return releasedDigest
	}
	return pick(w.maker, w.fleet.digests...)
}

// account is mostly that of the tenant, else that of another, root, root in another spelling, none, or an unknown one.
func (w *sharedWords) account() string {
	if w.plain || w.IntN(3) == 0 {
		return w.me.account
	}
	other := pick(w.maker, w.fleet.g.parties[:3]...)
	return pick(w.maker, other.account, other.account, fmt.Sprint(other.uid), "root", "0", "Root", "", "no-such-account")
}

// place is a folder and a pid file for a definition.
func (w *sharedWords) place() (folder, pidFile, log string) {
	own := filepath.Join(w.me.dir, "scratch")
	folder, pidFile, log = own, filepath.Join(own, fmt.Sprint("pid-", w.IntN(6))), filepath.Join(own, "log")
	if w.plain {
		return folder, pidFile, log
	}

	p := pick(w.maker, w.fleet.g.parties...)
	link := filepath.Join(w.me.dir, "links", "cur") // which the tenant swaps
	folder = pick(w.maker, own, own, p.dir, filepath.Join(p.dir, "keep"), filepath.Join(p.dir, "run"), link, "/", "/root")
	switch w.IntN(5) {
	case 0: // of a process of another party, or in a folder of it
		if p != w.me {
			pidFile = filepath.Join(p.dir, pick(w.maker, "run/v-api/pid", "run/v-hidden/pid", "run/v-kit/pid", "keep/pid",
				"new.pid"))
		}
	case 1:
		pidFile = filepath.Join(link, "pid")
	case 2:
		pidFile = filepath.Join(w.me.dir, "links", "pid")
	}
	log = pick(w.maker, log, filepath.Join(p.dir, "keep", "log"), filepath.Join(link, "log"), "/etc/shadow")
	return folder, pidFile, log
}

// commands are those of a definition. Without a command, the agent sends signals by itself.
func (w *sharedWords) commands(pidFile string) object {
	control := object{}
	for _, event := range []string{"start", "stop", "restart", "reload", "kill"} {
		if !w.plain && event != "start" && w.IntN(4) == 0 {
			continue
		}
		control[event+"_cmd"] = strings.Join([]string{w.fleet.g.life, event, w.mark, pidFile, "15s"}, " ")
	}
	return control
}

func (w *sharedWords) spec() object {
	folder, pidFile, log := w.place()
	return object{
		"identity": object{"proc_name": "life", "setup_path": folder, "pid_path": pidFile, "log_path": log,
			"user": w.account()},
		"control": w.commands(pidFile), "resource": object{"cpu": 90, "mem": 90},
		"monitor_policy": object{"auto_type": pick(w.maker, 1, 2, 2), "start_check_secs": 0, "stop_check_secs": 1,
			"start_retries": 1, "op_timeout": 10},
		"process_group": []any{object{"id": "g", "resource": object{"cpu_pool_limit": 10, "mem_pool_limit": 10,
			"cpu_pool_weight": 0, "mem_pool_weight": 1}}},
	}
}

func (w *sharedWords) info() object {
	folder, pidFile, log := w.place()
	info := object{"setup_path": folder, "proc_name": "life", "pid_path": pidFile, "log_path": log,
		"account": w.account(), "type": 1, "value_key": pick(w.maker, "x", "y", "v-job")}
	for name, command := range w.commands(pidFile) {
		info[name] = command
	}
	return info
}

// topology is the tenant's document, or one that brings in what is not its own.
func (w *sharedWords) topology() string {
	doc := w.fleet.document(w.me)
	if w.plain {
		return doc
	}
	other := pick(w.maker, w.fleet.g.parties[:3]...)
	return pick(w.maker,
		strings.ReplaceAll(doc, fmt.Sprint("ip: 127.0.0.", w.me.hosts[1]), fmt.Sprint("ip: 127.0.0.", other.hosts[1])),
		strings.ReplaceAll(doc, "user: "+w.me.account, "user: "+pick(w.maker, other.account, "root", `"0"`, `""`)),
		strings.Replace(doc, fmt.Sprint("biz: ", w.me.biz), fmt.Sprint("biz: ", other.biz), 1))
}
