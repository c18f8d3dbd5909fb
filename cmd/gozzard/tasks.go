package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/taskname"
)

// tasksOptions are the flags of `gozzard tasks`.
type tasksOptions struct {
	query  client.TaskQuery
	since  string
	limit  int
	output outputFlag
}

// newTasksCommand is `gozzard tasks`.
func newTasksCommand(env *cliEnv) *cobra.Command {
	var o tasksOptions
	cmd := &cobra.Command{
		Use:   "tasks [NAME...]",
		Short: "List the newest tasks",
		Long: `List the newest tasks, the newest first: what was asked for, by which user and app, and what became of
it. NAME may be a pattern: * is any text, ? is one character. A task must have everything that the
flags ask for. WHAT has the names that the console shows, such as shop/web; -o wide has the recorded
ones, which NAME and -n look for.

You see the tasks that "gozzard task ID" shows you: your own, and those of other users of the same app
whose targets you may all see. A person that logs in and sees the whole fleet sees the tasks of all; an
app never sees those of other apps and people, not even the app admin. The server keeps tasks for a limited time: a day, or as its flag --keep-results says.

Exit code: 0 listed, also when nothing matches, 2 wrong flags, 4 not allowed.`,
		Example: `  gozzard tasks
  gozzard tasks --mine --state running
  gozzard tasks web -n shop --action restart --since 24h
  gozzard tasks --host 10.0.0.5 --state failed -o wide
  gozzard tasks --limit 100 --before 20240102030405:17   # tasks older than this one`,
		ValidArgsFunction: env.completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			o.query.Names = append(o.query.Names, names...)
			return env.listTasks(cmd.Context(), &o)
		},
	}

	f, q := cmd.Flags(), &o.query
	f.StringVar(&o.since, "since", "",
		"only tasks since this `TIME`, such as 2026-01-02T15:04:05Z, or since this long ago, such as 24h")
	f.StringArrayVar(&q.Actions, "action", nil, "only tasks with this `ACTION`, such as start or register; may be "+
		"repeated")
	f.StringVar(&q.User, "user", "", "only tasks of this `USER`")
	f.StringVar(&q.App, "app", "", "only tasks of this `APP`; you can see tasks of your own app only")
	f.BoolVar(&q.Mine, "mine", false, "only your own tasks")
	f.StringArrayVarP(&q.Namespaces, "namespace", "n", nil,
		"only tasks about this `NAMESPACE`, or a pattern such as 'shop-*'; may be repeated")
	f.StringArrayVar(&q.Names, "name", nil, "only tasks about processes of this `NAME`, or a pattern; may be repeated")
	f.StringArrayVar(&q.Hosts, "host", nil,
		"only tasks about this `HOST`: cloud:ip, an IP address, a host name or an agent id; may be repeated")
	f.StringVar(&q.State, "state", "", "only tasks in this `STATE`: running (not every verdict is known), failed (a target "+
		"failed) or done (nothing failed)")
	f.IntVar(&o.limit, "limit", 20, "list at most this many")
	f.StringVar(&q.Before, "before", "", "only tasks that are older than this task `ID`")
	o.output.register(cmd, f, "table", "wide", "json", "yaml")
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"running", "failed", "done"},
		cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("before", env.completeTasks)
	return cmd
}

// listTasks prints the newest tasks.
func (env *cliEnv) listTasks(ctx context.Context, o *tasksOptions) error {
	// Check the flags.
	if err := o.output.check(); err != nil {
		return err
	}
	if o.limit < 1 || o.limit > client.MaxPage {
		return usage("--limit %d: use 1 to %d", o.limit, client.MaxPage)
	}
	if _, err := parseHostFlags(o.query.Hosts); err != nil {
		return err
	}
	var err error
	if o.query.Since, err = env.sinceFlag(o.since); err != nil {
		return err
	}

	// Ask the server.
	page := client.TaskPage{Tasks: []client.TaskSummary{}}
	var names shownNames
	err = env.withClient(func(c *client.Client) error {
		page, err = findTasks(ctx, c, o.query, o.limit)
		if err == nil && o.output.format == "table" {
			names = shownNamesOf(ctx, c, spacesOfTasks(page.Tasks))
		}
		return err
	})
	if err != nil {
		return err
	}

	// Print.
	if o.output.structured() {
		return o.output.write(env.out, page)
	}
	if len(page.Tasks) == 0 && page.Next == 0 {
		env.remark("no tasks found")
		if o.query.User != "" || o.query.App != "" {
			env.remark(onlyOwnTasks)
		}
		return nil
	}
	if err := taskTable(page.Tasks, names, o.output.format == "wide").write(env.out); err != nil {
		return err
	}
	if page.Next > 0 {
		env.remark("there may be more: go on with --before %s", nextTask(&page))
	}
	return nil
}

// maxTaskPages bounds the requests of one list: a filter that matches rarely must not read the whole history.
const maxTaskPages = 20

// findTasks reads pages until there are enough tasks. Next of the answer says where to go on.
func findTasks(ctx context.Context, c *client.Client, q client.TaskQuery, limit int) (client.TaskPage, error) {
	all := client.TaskPage{Tasks: []client.TaskSummary{}}
	for range maxTaskPages {
		page, err := c.Tasks(ctx, q, limit-len(all.Tasks))
		if err != nil {
			return all, err
		}
		all.Tasks, all.Next = append(all.Tasks, page.Tasks...), page.Next
		if page.Next == 0 || len(all.Tasks) >= limit {
			break
		}
		q.Before = strconv.FormatInt(page.Next, 10)
	}
	return all, nil
}

// spacesOfTasks are the namespaces of the processes of tasks.
func spacesOfTasks(tasks []client.TaskSummary) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range tasks {
			for _, p := range tasks[i].Processes {
				if !yield(p.Namespace) {
					return
				}
			}
		}
	}
}

func taskTable(tasks []client.TaskSummary, names shownNames, wide bool) *textTable {
	header := []string{"TIME", "TASK", "ACTION", "TARGETS", "DONE", "FAILED", "RUNNING", "BY", "WHAT"}
	if wide {
		header = append(header, "DOOR")
	}
	t := newTable(header...)
	for i := range tasks {
		s := &tasks[i]
		row := []string{s.At.UTC().Format(time.RFC3339), shortTask(s.ID), strings.Join(s.Actions, ","),
			strconv.Itoa(s.Counts.Targets), strconv.Itoa(s.Counts.Done), strconv.Itoa(s.Counts.Failed),
			strconv.Itoa(s.Counts.Running), callerName(s.User, s.App), processesText(s, names, wide)}
		if wide {
			row = append(row, s.Door)
		}
		t.add(row...)
	}
	return t
}

// shortTask is a task id as people read and type it, without its prefix.
func shortTask(id string) string { return string(taskname.Parse(id)) }

// nextTask is where a list of tasks goes on: the last task that is listed. When the server has looked at older ones that
// do not match, only the number of the oldest is known.
func nextTask(page *client.TaskPage) string {
	if n := len(page.Tasks); n > 0 {
		id := taskname.Parse(page.Tasks[n-1].ID)
		if seq, ok := id.Seq(); ok && int64(seq) == page.Next {
			return printable(string(id))
		}
	}
	return strconv.FormatInt(page.Next, 10)
}

// callerName is a user with its app; one of them may be missing.
func callerName(user, app string) string {
	return strings.Trim(user+"/"+app, "/")
}

// processesText names the processes of a task: the first three as people know them, or the recorded names of all that the
// server lists.
func processesText(s *client.TaskSummary, shown shownNames, wide bool) string {
	show := len(s.Processes)
	if !wide {
		show = min(show, 3)
	}
	var names []string
	for _, p := range s.Processes[:show] {
		if wide {
			names = append(names, p.Namespace+":"+p.Name)
		} else {
			names = append(names, shown.whole(p.Namespace, p.Name))
		}
	}
	text := strings.Join(names, ", ")
	if more := len(s.Processes) - show + s.More; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// completeTasks completes task ids: the newest ones that begin like the given text, with action and time.
func (env *cliEnv) completeTasks(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := env.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	page, err := c.Tasks(ctx, client.TaskQuery{}, completedTasks)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	var ids []string
	for i := range page.Tasks {
		s := &page.Tasks[i]
		id := printable(shortTask(s.ID))
		if !strings.HasPrefix(id, prefix) {
			id = printable(s.ID)
		}
		if strings.HasPrefix(id, prefix) {
			ids = append(ids, cobra.CompletionWithDesc(id, printable(fmt.Sprintf("%s %s, %s ago", strings.Join(s.Actions, ","),
				processesText(s, nil, false), shortDuration(env.now().Sub(s.At.Time))))))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completedTasks is how many tasks a shell offers.
const completedTasks = 30
