package cmdb

import (
	"encoding/json"
	"strconv"
	"strings"
)

// number is a whole number as CMDB writes it: some attributes are texts, and null means 0. Any other value becomes
// -1, which is neither an id nor a valid attribute, so that one wrong row does not make a page unreadable.
type number int

// UnmarshalJSON reads any of these forms.
func (n *number) UnmarshalJSON(b []byte) error {
	var text string
	switch {
	case string(b) == "null":
		*n = 0
		return nil
	case b[0] != '"':
		text = string(b)
	default:
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		if text == "" {
			*n = 0
			return nil
		}
	}

	i, err := strconv.Atoi(text)
	if err != nil {
		i = -1
	}

	*n = number(i)
	return nil
}

// addresses are one or several addresses: separated by commas, or as a list in newer versions. The first is the
// address of the agent.
type addresses string

// UnmarshalJSON reads either form.
func (a *addresses) UnmarshalJSON(b []byte) error {
	var list []string
	if b[0] == '[' {
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		*a = addresses(strings.Join(list, ","))
		return nil
	}
	return json.Unmarshal(b, (*string)(a))
}

func (a addresses) first() string {
	text, _, _ := strings.Cut(string(a), ",")
	return strings.TrimSpace(text)
}

// word is a text that some versions of CMDB write as a number, or not at all. Any other value is left out.
type word string

// UnmarshalJSON reads any of these forms.
func (w *word) UnmarshalJSON(b []byte) error {
	switch *w = ""; b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(w))
	case 'n', 't', 'f', '{', '[':
		return nil
	}
	*w = word(b)
	return nil
}

// page is a part of a list.
type page struct {
	Start int    `json:"start"`
	Limit int    `json:"limit"`
	Sort  string `json:"sort,omitempty"`
}

type cloudRow struct {
	ID   number `json:"bk_cloud_id"`
	Name string `json:"bk_cloud_name"`
}

type moduleRow struct {
	ID       number `json:"bk_module_id"`
	Template number `json:"service_template_id"`
}

// processRow is a process with its parents.
type processRow struct {
	Set struct {
		ID   number `json:"bk_set_id"`
		Name string `json:"bk_set_name"`
		Env  number `json:"bk_set_env"`
	} `json:"set"`
	Module struct {
		ID   number `json:"bk_module_id"`
		Name string `json:"bk_module_name"`
	} `json:"module"`
	Host struct {
		ID    number    `json:"bk_host_id"`
		Cloud number    `json:"bk_cloud_id"`
		IP    addresses `json:"bk_host_innerip"`
		IPv6  addresses `json:"bk_host_innerip_v6"`
		Agent string    `json:"bk_agent_id"`
	} `json:"host"`
	Service struct {
		ID   number `json:"id"`
		Name string `json:"name"`
	} `json:"service_instance"`
	Template struct {
		ID number `json:"id"`
	} `json:"process_template"`
	Process struct {
		ID         number `json:"bk_process_id"`
		Name       string `json:"bk_process_name"`
		FuncName   string `json:"bk_func_name"`
		FuncID     word   `json:"bk_func_id"`
		Num        number `json:"proc_num"`
		Priority   number `json:"priority"`
		User       string `json:"user"`
		WorkPath   string `json:"work_path"`
		PIDFile    string `json:"pid_file"`
		Start      string `json:"start_cmd"`
		Stop       string `json:"stop_cmd"`
		Restart    string `json:"restart_cmd"`
		Reload     string `json:"reload_cmd"`
		ForceStop  string `json:"face_stop_cmd"`
		Timeout    number `json:"timeout"`
		StartCheck number `json:"bk_start_check_secs"`

		BindInfo json.RawMessage `json:"bind_info"`
	} `json:"process"`
}

// processFields are the attributes to read.
func processFields() []string {
	return []string{
		"bk_process_id", "bk_process_name", "bk_func_name", "proc_num", "priority", "user", "work_path", "pid_file",
		"start_cmd", "stop_cmd", "restart_cmd", "reload_cmd", "face_stop_cmd", "timeout", "bk_start_check_secs",
		"bk_func_id", "bind_info",
	}
}
