package job

import (
	"math"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// form is what differs between the calls that operate processes.
type form struct {
	door   string // stored with the task
	action func(opType int64) gozzard.Action
	words  string // the meaning of op_type, for the message about an unknown one
	// define completes a definition that has its identity and limits
	define func(r *request, v *strictjson.Value, spec *gozzard.Spec)
	// owner is the field with the name of the person responsible for the process
	owner   string
	account bool // the caller may name an account
	pidless bool // the pid file may be left out: a process of which only runs are managed has none
	// the limits in place of limits that are out of range
	cpu, mem int64
}

const operations = "0 start, 1 stop, 2 query, 3 host, 4 unhost, 7 restart, 8 reload, 9 kill"

// operateProc makes the commands from the name and the path of the process.
func operateProc() form {
	return form{
		door: "job.operate_proc", action: operateAction, words: operations, define: (*request).compose,
		owner: "contact", account: true, cpu: 50, mem: 30,
	}
}

// operateProcess has the commands in the request.
func operateProcess() form {
	return form{
		door: "job.operate_process", action: operateAction, words: operations, define: (*request).bring,
		owner: "contact", account: true, cpu: 50, mem: 30,
	}
}

// manageProc starts or stops the supervision of processes.
func manageProc() form {
	return form{door: "job.manage_proc", action: manageAction, words: "1 host, 2 unhost", define: (*request).bring,
		owner: "proc_owner", pidless: true}
}

func operateAction(opType int64) gozzard.Action {
	switch opType {
	case 0:
		return gozzard.ActionStart
	case 1:
		return gozzard.ActionStop
	case 2:
		return gozzard.ActionQuery
	case 3:
		return gozzard.ActionHost
	case 4:
		return gozzard.ActionUnhost
	case 7:
		return gozzard.ActionRestart
	case 8:
		return gozzard.ActionReload
	case 9:
		return gozzard.ActionKill
	}
	return gozzard.ActionNone
}

// manageAction uses the numbers in the documentation of the call. Job passed them to GSE unchanged, where they mean
// stop and query.
func manageAction(opType int64) gozzard.Action {
	switch opType {
	case 1:
		return gozzard.ActionHost
	case 2:
		return gozzard.ActionUnhost
	}
	return gozzard.ActionNone
}

// action reads op_type, which is required.
func (r *request) action() gozzard.Action {
	v := r.get(&r.c.Body, "op_type", "operate_type")
	before := r.c.Faults.Len()
	n := v.Int(math.MinInt64, math.MaxInt64)
	if r.c.Faults.Len() > before {
		return gozzard.ActionNone
	}
	action := r.form.action(n)
	if action == gozzard.ActionNone {
		r.violate(&v, "%d is no operation (%s)", n, r.form.words)
	}
	return action
}
