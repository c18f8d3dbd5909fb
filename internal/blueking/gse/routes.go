package gse

import "github.com/gozzard/gozzard/internal/blueking"

// The families of paths. The bus has one folder for all calls, the gateway of GSE 2.0 has three.
const (
	familyESB     = "esb"
	familyProc    = "proc"
	familyCluster = "cluster"
	familyTask    = "task"
)

func prefixes() []blueking.Prefix {
	return []blueking.Prefix{
		{Path: "/api/c/compapi/v2/gse", Family: familyESB},
		{Path: "/api/c/compapi/gse", Family: familyESB},
		{Path: "/api/v2/proc", Family: familyProc, Gateway: true},
		{Path: "/api/v2/cluster", Family: familyCluster, Gateway: true},
		{Path: "/api/v2/task", Family: familyTask, Gateway: true},
		{Path: "/api/bk-gse/*/api/v2/proc", Family: familyProc, Gateway: true}, // * is the stage of the gateway
		{Path: "/api/bk-gse/*/api/v2/cluster", Family: familyCluster, Gateway: true},
		{Path: "/api/bk-gse/*/api/v2/task", Family: familyTask, Gateway: true},
	}
}

func (s *server) routes() []blueking.Route {
	proc := []string{familyESB, familyProc}
	bus := []string{familyESB}
	cluster, task := []string{familyCluster}, []string{familyTask}
	const user, small, large = blueking.AccessUser, blueking.MaxBody, blueking.MaxBodyMulti
	return []blueking.Route{
		{Name: "register_proc_info", Families: proc, Access: user, MaxBody: small, Handle: s.register},
		{Name: "update_proc_info", Families: proc, Access: user, MaxBody: small, Handle: s.update},
		{Name: "unregister_proc_info", Families: proc, Access: user, MaxBody: small, Handle: s.unregister},
		{Name: "operate_proc", Families: proc, Access: user, MaxBody: small, Handle: s.operateV1},
		{Name: "operate_proc_v2", Families: proc, Access: user, MaxBody: small, Handle: s.operateV2},
		{Name: "operate_proc_multi", Families: proc, Access: user, MaxBody: large, Handle: s.operateMulti},
		{Name: "get_proc_operate_result", Families: proc, Access: user, MaxBody: small, Read: true, Handle: s.result},
		{Name: "get_proc_operate_result_v2", Families: proc, Access: user, MaxBody: small, Read: true,
			Handle: s.result},
		{Name: "get_proc_status", Families: proc, Access: user, MaxBody: small, Read: true, Handle: s.status},
		{Name: "get_proc_status_v2", Families: proc, Access: user, MaxBody: small, Read: true, Handle: s.status},
		{Name: "sync_proc_status", Families: proc, Access: user, MaxBody: small, Read: true, Handle: s.sync},
		{Name: "set_process_group_info", Families: proc, Access: user, MaxBody: small, Handle: s.setGroups},
		{Name: "get_process_group_info", Families: proc, Access: user, MaxBody: small, Read: true, Handle: s.groups},
		{Name: "upgrade_to_agent_id", Families: proc, Access: user, MaxBody: small, Handle: s.upgrade},
		{Name: "get_agent_status", Families: bus, Access: user, MaxBody: small, Read: true, Handle: s.agentStatus},
		{Name: "get_agent_info", Families: bus, Access: user, MaxBody: small, Read: true, Handle: s.agentInfo},
		{Name: "list_agent_state", Families: cluster, Access: user, MaxBody: small, Read: true,
			Handle: s.listAgentState},
		{Name: "list_agent_info", Families: cluster, Access: user, MaxBody: small, Read: true, Handle: s.listAgentInfo},
		{Name: "operate_agent", Families: cluster, Access: user, MaxBody: small, Handle: s.operateAgent},
		{Name: "async_execute_script", Path: "extensions/async_execute_script", Families: task, Access: user, MaxBody: small,
			Handle: s.runScript},
		{Name: "get_execute_script_result", Path: "extensions/get_execute_script_result", Families: task, Access: user,
			MaxBody: small, Read: true, Handle: s.scriptResult},
		{Name: "async_transfer_file", Path: "extensions/async_transfer_file", Families: task, Access: user, MaxBody: small,
			Handle: s.transferFiles},
		{Name: "get_transfer_file_result", Path: "extensions/get_transfer_file_result", Families: task, Access: user,
			MaxBody: small, Read: true, Handle: s.transferResult},
		{Name: "async_terminate_transfer_file", Path: "extensions/async_terminate_transfer_file", Families: task, Access: user,
			MaxBody: small, Handle: s.terminateTransfer},
		{Name: "get_task_state", Families: task, Access: user, MaxBody: small, Read: true, Handle: s.state},
	}
}
