package sqlstore

import (
	"encoding/json"

	"github.com/gozzard/gozzard/internal/topology"
)

// The lists of a business as the record stores them, in JSON. Each type here has the fields of its namesake in package
// topology. If only one of the two is changed, the conversions below do not compile.

type cloudDoc struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

type templateDoc struct {
	ID        int    `json:"id"`
	Name      string `json:"name"`
	FileName  string `json:"file,omitempty"`
	Path      string `json:"path,omitempty"`
	Owner     string `json:"owner,omitempty"`
	Group     string `json:"group,omitempty"`
	Mode      string `json:"mode,omitempty"`
	Templates []int  `json:"templates,omitempty"`
	Processes []int  `json:"processes,omitempty"`
}

type processDoc struct {
	ID             int    `json:"id"`
	Name           string `json:"name"`
	FuncName       string `json:"func,omitempty"`
	Template       int    `json:"template,omitempty"`
	Num            int    `json:"num,omitempty"`
	Priority       int    `json:"priority,omitempty"`
	FuncID         string `json:"func_id,omitempty"`
	BindInfo       string `json:"bind_info,omitempty"`
	User           string `json:"user,omitempty"`
	WorkPath       string `json:"work_path,omitempty"`
	PIDFile        string `json:"pid_file,omitempty"`
	Start          string `json:"start,omitempty"`
	Stop           string `json:"stop,omitempty"`
	Restart        string `json:"restart,omitempty"`
	Reload         string `json:"reload,omitempty"`
	ForceStop      string `json:"force_stop,omitempty"`
	Timeout        int    `json:"timeout,omitempty"`
	StartCheckSecs int    `json:"start_check,omitempty"`
	Native         string `json:"native,omitempty"`
	More           string `json:"more,omitempty"`
}

func toCloud(c topology.Cloud) cloudDoc                { return cloudDoc(c) }
func fromCloud(d cloudDoc) topology.Cloud              { return topology.Cloud(d) }
func toTemplate(t topology.ConfigTemplate) templateDoc { return templateDoc(t) }
func fromTemplate(d templateDoc) topology.ConfigTemplate {
	return topology.ConfigTemplate(d)
}
func toProcess(p topology.Process) processDoc   { return processDoc(p) }
func fromProcess(d processDoc) topology.Process { return topology.Process(d) }

// listText encodes a list as JSON. An empty list is "".
func listText[T, D any](list []T, doc func(T) D) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	docs := make([]D, len(list))
	for i := range list {
		docs[i] = doc(list[i])
	}
	b, err := json.Marshal(docs)
	return string(b), err
}

// fromList decodes what listText encoded.
func fromList[T, D any](s string, value func(D) T) ([]T, error) {
	if s == "" {
		return nil, nil
	}
	var docs []D
	if err := json.Unmarshal([]byte(s), &docs); err != nil {
		return nil, err
	}
	list := make([]T, len(docs))
	for i := range docs {
		list[i] = value(docs[i])
	}
	return list, nil
}
