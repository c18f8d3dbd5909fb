package topology

import "net/netip"

// attribute is one attribute of a process, with its name in documents. Either text or number is set.
type attribute struct {
	key    string
	text   *string
	number *int
}

// attributes lists all attributes of a process, in the order in which documents have them.
func (p *Process) attributes() [18]attribute {
	return [...]attribute{
		{key: "id", number: &p.ID},
		{key: "name", text: &p.Name},
		{key: "func_name", text: &p.FuncName},
		{key: "template_id", number: &p.Template},
		{key: "proc_num", number: &p.Num},
		{key: "priority", number: &p.Priority},
		{key: "user", text: &p.User},
		{key: "work_path", text: &p.WorkPath},
		{key: "pid_file", text: &p.PIDFile},
		{key: "start_cmd", text: &p.Start},
		{key: "stop_cmd", text: &p.Stop},
		{key: "restart_cmd", text: &p.Restart},
		{key: "reload_cmd", text: &p.Reload},
		{key: "face_stop_cmd", text: &p.ForceStop},
		{key: "timeout", number: &p.Timeout},
		{key: "start_check_secs", number: &p.StartCheckSecs},
		{key: "func_id", text: &p.FuncID},
		{key: "bind_info", text: &p.BindInfo},
	}
}

// Clear empties the attribute with the name key in documents.
func (p *Process) Clear(key string) {
	for _, a := range p.attributes() {
		switch {
		case a.key != key:
		case a.text != nil:
			*a.text = ""
		default:
			*a.number = 0
		}
	}
}

// addrText is an address as it is written in documents, or "" when there is none.
func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
