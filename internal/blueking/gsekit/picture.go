package gsekit

import (
	"encoding/json"
	"net/netip"

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
}

// picture is the process of a task as JSON; it is stored with the task.
func picture(r *topology.Row, _ int) []byte {
	return encode(processInfo{
		Set: setInfo{r.Set, r.Env.String(), r.SetName}, Module: moduleInfo{r.Module, r.ModuleName},
		Host:            hostInfo{r.Host.Cloud, ipText(r.Host.IP), ipText(r.Host.IPv6), string(r.Host.Agent)},
		ServiceInstance: serviceInfo{r.Service, r.ServiceName}, ProcessTemplate: templateInfo{r.Template},
		Process: procInfo{r.Biz, r.Process, r.Name, r.Priority, len(r.Instances), r.Service},
	})
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
