package gsekit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/netip"
	"strconv"

	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// processInfo is a process at the time when its job was created.
type processInfo struct {
	Set             setInfo      `json:"set"`
	Module          moduleInfo   `json:"module"`
	Host            hostInfo     `json:"host"`
	ServiceInstance serviceInfo  `json:"service_instance"`
	ProcessTemplate templateInfo `json:"process_template"`
	Process         procInfo     `json:"process"`
}

type setInfo struct {
	ID   int    `json:"bk_set_id"`
	Env  string `json:"bk_set_env"`
	Name string `json:"bk_set_name"`
}

type moduleInfo struct {
	ID   int    `json:"bk_module_id"`
	Name string `json:"bk_module_name"`
}

type hostInfo struct {
	Cloud int    `json:"bk_cloud_id"`
	IP    string `json:"bk_host_innerip"`
	IPv6  string `json:"bk_host_innerip_v6"`
	Agent string `json:"bk_agent_id"`
	ID    int    `json:"bk_host_id,omitempty"` // in CMDB
}

type serviceInfo struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

type templateInfo struct {
	ID int `json:"id"`
}

type procInfo struct {
	Biz      int    `json:"bk_biz_id"`
	ID       int    `json:"bk_process_id"`
	Name     string `json:"bk_process_name"`
	Priority int    `json:"priority"`
	Num      int    `json:"proc_num"`
	Service  int    `json:"service_instance_id"`

	*procAttributes
}

// procAttributes are the attributes of a process as its source has them, with their placeholders.
type procAttributes struct {
	FuncName   string `json:"bk_func_name"`
	FuncID     string `json:"bk_func_id"`
	User       string `json:"user"`
	WorkPath   string `json:"work_path"`
	PIDFile    string `json:"pid_file"`
	Start      string `json:"start_cmd"`
	Stop       string `json:"stop_cmd"`
	Restart    string `json:"restart_cmd"`
	Reload     string `json:"reload_cmd"`
	ForceStop  string `json:"face_stop_cmd"`
	Timeout    int    `json:"timeout"`
	StartCheck int    `json:"bk_start_check_secs"`

	BindInfo json.RawMessage `json:"bind_info"`
}

// attributesOf are the attributes of a process; nil if it is not in the business any more.
func attributesOf(p *topology.Process) *procAttributes {
	if p == nil {
		return nil
	}
	return &procAttributes{FuncName: p.FuncName, FuncID: p.FuncID, User: p.User, WorkPath: p.WorkPath, PIDFile: p.PIDFile,
		Start: p.Start, Stop: p.Stop, Restart: p.Restart, Reload: p.Reload, ForceStop: p.ForceStop,
		Timeout: p.Timeout, StartCheck: p.StartCheckSecs, BindInfo: json.RawMessage(cmp.Or(p.BindInfo, "[]"))}
}

// picture is the process of a task as JSON; it is stored with the task.
func picture(it *record.TopologyItem) []byte {
	r := it.Row
	return encode(processInfo{
		Set: setInfo{r.Set, r.Env.String(), r.SetName}, Module: moduleInfo{r.Module, r.ModuleName},
		Host:            hostInfo{r.Host.Cloud, ipText(r.Host.IP), ipText(r.Host.IPv6), string(r.Host.Agent), r.Host.ID},
		ServiceInstance: serviceInfo{r.Service, r.ServiceName}, ProcessTemplate: templateInfo{r.Template},
		Process: procInfo{r.Biz, r.Process, r.Name, r.Priority, len(r.Instances), r.Service,
			attributesOf(it.Process)},
	})
}

// hostID is the id of the host in a stored picture, 0 if it has none. It looks for the key only: in texts of a picture the
// quotes of such a key are escaped.
func hostID(picture []byte) int {
	_, rest, found := bytes.Cut(picture, []byte(`"bk_host_id":`))
	if !found {
		return 0
	}
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.Atoi(string(rest[:max(end, 0)]))
	if err != nil {
		return 0
	}
	return n
}

func ipText(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// kept is the stored JSON of a task, or an empty object: another door may have created the job.
func kept(b []byte) json.RawMessage {
	if !json.Valid(b) {
		return json.RawMessage("{}")
	}
	return b
}
