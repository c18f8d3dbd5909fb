package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/client"
)

// newTopologyCommand is `gozzard topology`.
func newTopologyCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "Manage businesses: sets, modules and service instances",
		Long: `Manage businesses: sets with their environment, modules, service instances on hosts, and the
processes of each. Processes can then be chosen by their place in every command: gozzard ps -e
'front.*.*.nginx.*'.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}

	cmd.AddCommand(newTopologyApplyCommand(env), newTopologyExportCommand(env), newTopologyListCommand(env),
		newTopologyRemoveCommand(env), newTopologyTreeCommand(env))
	return cmd
}

// newTopologyExportCommand is `gozzard topology export`.
func newTopologyExportCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "export [BIZ]",
		Short: "Print the document of a business",
		Long: `Print the document of a business in the form that "gozzard topology apply" reads. BIZ is optional
while there is only one business.`,
		Example: `  gozzard topology export 2 > shop.yaml
  gozzard topology export 2 -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withBusiness(cmd.Context(), args, &output,
				func(ctx context.Context, c *client.Client, biz int) error {
					return env.exportTopology(ctx, c, &output, biz)
				})
		},
	}

	output.register(cmd, cmd.Flags(), "yaml", "json")
	return cmd
}

// exportTopology prints the document of a business, as its author wrote it or as JSON.
func (env *cliEnv) exportTopology(ctx context.Context, c *client.Client, output *outputFlag, biz int) error {
	if output.format == "json" {
		doc, err := c.TopologyJSON(ctx, biz)
		if err != nil {
			return withExitCode(err)
		}
		return output.write(env.out, doc)
	}
	doc, err := c.Topology(ctx, biz)
	if err != nil {
		return withExitCode(err)
	}
	return checkWrite(env.out.Write(doc))
}

// withBusiness runs f with the business that the argument names, or with the only one.
func (env *cliEnv) withBusiness(ctx context.Context, args []string, output *outputFlag,
	f func(context.Context, *client.Client, int) error) error {
	if err := output.check(); err != nil {
		return err
	}

	// Read the argument.
	biz := 0
	if len(args) > 0 {
		var err error
		if biz, err = strconv.Atoi(args[0]); err != nil || biz < 1 {
			return usage("%q is not a business id, such as 2", printable(args[0]))
		}
	}

	// Find the business.
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	if biz == 0 {
		if biz, err = onlyBusiness(ctx, c); err != nil {
			return err
		}
	}

	return f(ctx, c, biz)
}

// newTopologyListCommand is `gozzard topology list`.
func newTopologyListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the businesses",
		Long: `List the businesses with their source: an applied file, or BlueKing CMDB. LEFT is how many parts of what CMDB
has could not be taken over; they are listed below the table.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.listBusinesses(cmd.Context(), &output)
		},
	}
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// listBusinesses prints all businesses.
func (env *cliEnv) listBusinesses(ctx context.Context, output *outputFlag) error {
	if err := output.check(); err != nil {
		return err
	}

	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	list, err := c.Businesses(ctx)
	if err != nil {
		return withExitCode(err)
	}
	if output.structured() {
		return output.write(env.out, list)
	}
	if list.Count == 0 {
		env.remark("there is no business")
		return nil
	}

	t := newTable("BIZ", "NAME", "VERSION", "SOURCE", "SINCE", "LEFT")
	for _, b := range list.Businesses {
		t.add(strconv.Itoa(b.ID), b.Name, strconv.FormatInt(b.Version, 10), b.Source, b.At.UTC().Format(time.RFC3339),
			strconv.Itoa(len(b.Left)))
	}
	if err := t.write(env.out); err != nil {
		return err
	}

	for _, b := range list.Businesses {
		for _, line := range b.Left {
			env.remark("not taken from CMDB, business %d: %s", b.ID, printable(line))
		}
	}
	return nil
}
