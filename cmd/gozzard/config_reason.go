package main

import (
	"path"
	"slices"
	"strings"

	"github.com/gozzard/gozzard/client"
)

// configReason says why a process instance of a job failed, or what became of it, in a sentence. "" is nothing.
func (env *cliEnv) configReason(x *client.ConfigTask) string {
	text := env.said(x.Message)
	switch x.Reason {
	case "config_unbound":
		return env.text("no template is bound to it")
	case "config_active":
		return env.text("template %s has no active version", x.Message)
	case "config_include":
		return env.text("the included template %s does not exist", x.Message)
	case "config_gone":
		return env.text("the process is not in the business any more")
	case "config_not_made":
		return env.text("nothing was rendered for template %s", x.Message)
	case "config_absent":
		return env.text("%s is not on the host", x.Message)
	case "config_differs":
		return env.text("the file on the host is another one")
	case "config_render":
		return env.text("cannot be rendered: %s", text)
	case "config_read":
		return env.text("cannot be read: %s", text)
	case "config_write":
		return env.writeReason(x)
	}

	if text == "" {
		return x.Reason
	}
	return text
}

// writeReason says why a host did not take a file: the path, and what the host says.
func (env *cliEnv) writeReason(x *client.ConfigTask) string {
	for i := range x.Files {
		at := path.Clean(x.Files[i].Path) + ": "
		if why, ok := strings.CutPrefix(x.Message, at); ok {
			return at + env.said(why)
		}
	}
	return env.said(x.Message)
}

// remarkReleased says that files lie on hosts although the instances there failed, and how to take them back.
func (env *cliEnv) remarkReleased(job *client.ConfigJobDetail) {
	i := slices.IndexFunc(job.List, func(x client.ConfigTask) bool { return x.Reason == "config_then" || x.Reason == "config_watch" })
	if i < 0 {
		return
	}
	name := "TEMPLATE"
	if files := job.List[i].Files; len(files) > 0 {
		name = files[0].Template
	}
	env.remark("the new files are on the hosts that failed after the release: a restart reads them. Take them back with: "+
		"gozzard config rollback %s --version VERSION (gozzard config show %[1]s lists the versions)", printable(name))
}
