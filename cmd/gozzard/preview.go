package main

import (
	"fmt"

	"github.com/gozzard/gozzard/client"
)

// printPreview prints what an operation would do.
func (env *cliEnv) printPreview(o *outputFlag, what string, p *client.Preview) error {
	if o.structured() {
		return o.write(env.out, p)
	}

	// List the processes.
	table := newTable("HOST", "NAMESPACE", "NAME", "CODE", "MESSAGE")
	for i := range p.Processes {
		r := &p.Processes[i]
		table.add(refName(r.Host), r.Namespace, r.Name, r.Code, env.said(r.Message))
	}
	if err := table.write(env.out); err != nil {
		return err
	}

	env.remarkSecondPerson(p)

	// Sum up.
	if len(p.Processes) < p.Targets {
		env.remark("%d of %d processes", len(p.Processes), p.Targets)
	}
	line := env.text("dry run: %s would touch %d", what, p.Targets-p.Rejected)
	if p.Rejected > 0 {
		line += env.text(", and be rejected for %d", p.Rejected)
	}
	return checkWrite(fmt.Fprintln(env.out, line+env.text("; nothing was done")))
}

// definitionSigns are the marks of plans.
var definitionSigns = map[string]string{"new": "+", "changed": "~", "unchanged": "="}

// remarkSecondPerson says that a request would not be carried out at once.
func (env *cliEnv) remarkSecondPerson(p *client.Preview) {
	switch p.SecondPerson {
	case "waits":
		env.remark("this needs a second person: it would wait until another admin approves it (gozzard request)")
	case "refused":
		env.remark("this needs a second person, and an app cannot ask one: use a login of your own (gozzard user login NAME)")
	}
}

// printPlan prints what registering a document would change.
func (env *cliEnv) printPlan(p *client.Preview) error {
	for i := range p.Processes {
		r := &p.Processes[i]
		sign := definitionSigns[r.Definition]
		lines := r.Fields
		if r.Code != "" {
			sign, lines = "!", []string{r.Code + ": " + env.said(r.Message)}
		}
		text := printable(sign + " " + placed(env.chinese, r.Namespace+"/"+r.Name, refName(r.Host)))
		for _, l := range lines {
			text += "\n    " + printable(l)
		}
		if err := checkWrite(fmt.Fprintln(env.out, text)); err != nil {
			return err
		}
	}
	env.remarkSecondPerson(p)
	return nil
}

// changeText says what a document does to definitions, such as "1 new, 2 unchanged".
func (env *cliEnv) changeText(p *client.Preview) string {
	var list []string
	for _, c := range []struct {
		n    int
		text string
	}{{p.New, "%d new"}, {p.Changed, "%d changed"}, {p.Unchanged, "%d unchanged"}} {
		if c.n > 0 {
			list = append(list, env.text(c.text, c.n))
		}
	}
	return env.clauses(list)
}
