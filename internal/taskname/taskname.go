// Package taskname writes and reads the names by which callers and the record know tasks.
package taskname

import (
	"strings"

	"github.com/gozzard/gozzard"
)

// prefix stands before every task id that leaves the program. BlueKing's clients expect it, scripts have stored ids
// with it, servers of earlier versions accept no other form, and the hash chain of the audit covers it.
const prefix = "GSETASK:"

// Of is the name of a task in answers and in the record, such as GSETASK:20240102030405:17. No id has no name.
func Of(id gozzard.TaskID) string {
	if id == "" {
		return ""
	}
	return prefix + string(id)
}

// Parse reads the id from a name, with the prefix or without it. It does not check the id: TaskID.Seq does.
func Parse(name string) gozzard.TaskID {
	return gozzard.TaskID(strings.TrimPrefix(name, prefix))
}
