package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newTopologyTreeCommand is `gozzard topology tree`.
func newTopologyTreeCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	var envName string
	cmd := &cobra.Command{
		Use:   "tree [BIZ]",
		Short: "Draw a business with the status of its processes",
		Long: `Draw the sets and modules of a business with the number of their processes. A process counts as
running when all its instances are running, as unregistered when no agent knows any of them, and as
stopped otherwise. It counts as managed when the agents supervise all its instances. BIZ is optional
while there is only one business.`,
		Example: `  gozzard topology tree 2
  gozzard topology tree 2 --env formal -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withBusiness(cmd.Context(), args, &output,
				func(ctx context.Context, c *client.Client, biz int) error {
					return env.printTree(ctx, c, &output, biz, envName)
				})
		},
	}

	cmd.Flags().StringVar(&envName, "env", "",
		"only sets of this `ENV`: 1 or test, 2 or experience, 3 or formal (default: all)")
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// printTree prints the tree of a business.
func (env *cliEnv) printTree(ctx context.Context, c *client.Client, output *outputFlag, biz int, envName string) error {
	tree, err := c.Tree(ctx, biz, envName)
	if err != nil {
		return withExitCode(err)
	}
	if output.structured() {
		return output.write(env.out, tree)
	}
	return treeTable(&tree).write(env.out)
}

// treeTable is the table of sets and modules, drawn as a tree.
func treeTable(tree *client.Tree) *textTable {
	t := newTable("BUSINESS", "ID", "ENV", "SERVICES", "PROCESSES", "RUNNING", "STOPPED", "UNREGISTERED", "MANAGED")
	services := 0
	for _, s := range tree.Sets {
		services += countServices(&s)
	}

	t.add(treeRow(tree.Name, tree.Biz, "", services, tree.Counts)...)

	for i := range tree.Sets {
		s := &tree.Sets[i]
		node, below := treePrefix(i, len(tree.Sets))
		t.addIndented(node, treeRow(s.Name, s.ID, envText(s.Env), countServices(s), s.Counts)...)
		for j := range s.Modules {
			m := &s.Modules[j]
			node, _ := treePrefix(j, len(s.Modules))
			t.addIndented(below+node, treeRow(m.Name, m.ID, "", m.Services, m.Counts)...)
		}
	}

	return t
}

// treePrefix is the drawing before the i-th of n nodes, and before the nodes below it.
func treePrefix(i, n int) (node, below string) {
	if i == n-1 {
		return "└─ ", "   "
	}
	return "├─ ", "│  "
}

// treeRow is one row of the tree.
func treeRow(name string, id int, env string, services int, n client.TreeCount) []string {
	cells := []string{name, strconv.Itoa(id), env}
	for _, x := range []int{services, n.Processes, n.Running, n.Stopped, n.Unregistered, n.Managed} {
		cells = append(cells, strconv.Itoa(x))
	}
	return cells
}

// countServices is the number of service instances of a set.
func countServices(s *client.TreeSet) int {
	n := 0
	for i := range s.Modules {
		n += s.Modules[i].Services
	}
	return n
}

// envText is the name of an environment of BlueKing CMDB.
func envText(env int) string {
	switch env {
	case 1:
		return "test"
	case 2:
		return "experience"
	case 3:
		return "formal"
	case -1:
		return "none"
	}
	return strconv.Itoa(env)
}
