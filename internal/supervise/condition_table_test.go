package supervise

import (
	"testing"

	"github.com/gozzard/gozzard"
)

// known is a process that the agent has looked for and that does not run.
func known(change func(*conditionInput)) conditionInput {
	in := conditionInput{kind: gozzard.ShownResident, wanted: gozzard.StateStopped, readable: true, looked: true}
	change(&in)
	return in
}

// supervised is a process that should run.
func supervised(change func(*conditionInput)) conditionInput {
	return known(func(in *conditionInput) {
		in.hosted, in.wanted = true, gozzard.StateRunning
		change(in)
	})
}

// TestCondition has a row for every rule about the state of a process.
func TestCondition(t *testing.T) {
	type input = conditionInput
	bad, well, lost := gozzard.Ending{At: 1, Known: true, Code: 3}, gozzard.Ending{At: 1, Known: true}, gozzard.Ending{At: 1}
	for name, tc := range map[string]struct {
		in   conditionInput
		want gozzard.Condition
	}{
		"registered only":           {known(func(*input) {}), gozzard.ConditionStopped},
		"runs":                      {supervised(func(in *input) { in.running = true }), gozzard.ConditionRunning},
		"runs, not supervised":      {known(func(in *input) { in.running = true }), gozzard.ConditionRunning},
		"runs, an old start failed": {known(func(in *input) { in.running, in.startFailed = true, true }), gozzard.ConditionRunning},
		"check not over":            {supervised(func(in *input) { in.running, in.launching = true, true }), gozzard.ConditionStarting},
		"check not over, unhealthy": {
			supervised(func(in *input) { in.running, in.launching, in.unhealthy = true, true, true }),
			gozzard.ConditionStarting},
		"launcher runs": {known(func(in *input) { in.launching = true }), gozzard.ConditionStarting},
		"first start, nobody has looked": {
			conditionInput{readable: true, launching: true}, gozzard.ConditionStarting},
		"unhealthy": {supervised(func(in *input) { in.running, in.unhealthy = true, true }), gozzard.ConditionUnhealthy},

		"not looked for yet": {supervised(func(in *input) { in.looked, in.awaitsStart = false, true }), gozzard.ConditionUnknown},
		"first run is planned": {supervised(func(in *input) { in.looked, in.neverRan, in.awaitsRun = false, true, true }),
			gozzard.ConditionScheduled},
		"a later run is planned, not looked for": {supervised(func(in *input) { in.looked, in.awaitsRun = false, true }),
			gozzard.ConditionUnknown},
		"definition cannot be read": {supervised(func(in *input) { in.readable = false }), gozzard.ConditionUnknown},
		"two candidates":            {supervised(func(in *input) { in.unclear, in.awaitsStart = true, true }), gozzard.ConditionUnknown},
		"two candidates, stopped":   {known(func(in *input) { in.unclear = true }), gozzard.ConditionUnknown},
		"down, started at once":     {supervised(func(in *input) { in.awaitsStart, in.downs = true, 1 }), gozzard.ConditionStarting},
		"first pause":               {waits(1), gozzard.ConditionBackingOff},
		"second pause":              {waits(2), gozzard.ConditionBackingOff},
		"third quick end":           {waits(3), gozzard.ConditionCrashLoop},
		"many quick ends":           {waits(30), gozzard.ConditionCrashLoop},
		"restart_max reached":       {supervised(func(in *input) { in.downs = 4 }), gozzard.ConditionFailed},
		"cannot be started":         {supervised(func(*input) {}), gozzard.ConditionFailed},
		"start failed":              {known(func(in *input) { in.startFailed = true }), gozzard.ConditionFailed},
		"stopped after a bad end":   {known(func(in *input) { in.end = bad }), gozzard.ConditionStopped},
		"ended, not supervised": {
			known(func(in *input) { in.wanted, in.end = gozzard.StateRunning, bad }), gozzard.ConditionStopped},
		"on-failure ended well":      {supervised(func(in *input) { in.completed = true }), gozzard.ConditionCompleted},
		"on-failure, then unmanaged": {known(func(in *input) { in.completed, in.wanted = true, gozzard.StateRunning }), gozzard.ConditionCompleted},

		"one-shot ended well":      {oneShot(well), gozzard.ConditionCompleted},
		"one-shot ended badly":     {oneShot(bad), gozzard.ConditionFailed},
		"one-shot ended by memory": {oneShot(gozzard.Ending{At: 1, OOM: true}), gozzard.ConditionFailed},
		"one-shot ended unseen":    {oneShot(lost), gozzard.ConditionStopped},
		"one-shot never ran":       {oneShot(gozzard.Ending{}), gozzard.ConditionStopped},
		"one-shot was stopped": {
			known(func(in *input) { in.kind, in.end = gozzard.ShownOneShot, bad }), gozzard.ConditionStopped},

		"periodic waits":                   {periodic(gozzard.Ending{}, true), gozzard.ConditionScheduled},
		"periodic ran well":                {periodic(well, true), gozzard.ConditionScheduled},
		"periodic ended unseen":            {periodic(lost, true), gozzard.ConditionScheduled},
		"periodic ran badly":               {periodic(bad, true), gozzard.ConditionFailed},
		"periodic without a readable rule": {periodic(well, false), gozzard.ConditionFailed},
		"periodic was stopped": {
			known(func(in *input) { in.kind, in.end = gozzard.ShownPeriodic, well }), gozzard.ConditionStopped},
	} {
		t.Run(name, func(t *testing.T) {
			if got := condition(tc.in); got != tc.want {
				t.Errorf("%+v is %s, want %s", tc.in, got, tc.want)
			}
		})
	}
}

func waits(downs int) conditionInput {
	return supervised(func(in *conditionInput) { in.awaitsStart, in.startLater, in.downs = true, true, downs })
}

func oneShot(end gozzard.Ending) conditionInput {
	return supervised(func(in *conditionInput) { in.kind, in.end = gozzard.ShownOneShot, end })
}

func periodic(end gozzard.Ending, readable bool) conditionInput {
	return supervised(func(in *conditionInput) { in.kind, in.end, in.awaitsRun = gozzard.ShownPeriodic, end, readable })
}
