package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// newRequestCommand is `gozzard request`.
func newRequestCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "request",
		Short: "Approve or reject what waits for a second person",
		Long: `Some acts wait for a second person if the server has --second-person: grants of the role admin, the
return of revoked hosts, and commands of root on many hosts. An admin of everything with a login of
its own approves, but not the person that asked, and no app. An approved request is carried out at
once, exactly as it was asked for.`,
	}
	cmd.AddCommand(newRequestListCommand(env), newRequestApproveCommand(env), newRequestRejectCommand(env))
	return cmd
}

// newRequestListCommand is `gozzard request list`.
func newRequestListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List requests, the newest first",
		Long:  "List your own requests. An admin of everything sees all of them.",
		Example: `  gozzard request list
  gozzard request list -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.listRequests(cmd.Context(), &output)
		},
	}
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// listRequests prints the requests.
func (env *cliEnv) listRequests(ctx context.Context, output *outputFlag) error {
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.Requests(ctx)
	if err != nil {
		return withExitCode(err)
	}
	if output.structured() {
		return output.write(env.out, map[string]any{"requests": list})
	}

	t := newTable("ID", "STATE", "USER", "EXPIRES", "DIGEST", "WHAT", "DECIDER", "RESULT")
	for _, r := range list {
		t.add(strconv.FormatInt(r.ID, 10), r.State, r.User, r.Expires.Format(time.RFC3339), r.Digest, r.What, r.Decider,
			r.Result)
	}
	return t.write(env.out)
}

// newRequestApproveCommand is `gozzard request approve`.
func newRequestApproveCommand(env *cliEnv) *cobra.Command {
	return &cobra.Command{
		Use:   "approve ID DIGEST",
		Short: "Approve a request, which is then carried out",
		Long: `Approve a request of another person. DIGEST is that of "gozzard request list": it covers everything
that is carried out, so you approve what you have seen.`,
		Example: "  gozzard request approve 3 5f0c1c5d2f8e4a7bb0c2d7d7c1a0e9f4",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.decideRequest(cmd.Context(), args[0], "approved", args[1])
		},
	}
}

// newRequestRejectCommand is `gozzard request reject`.
func newRequestRejectCommand(env *cliEnv) *cobra.Command {
	return &cobra.Command{
		Use: "reject ID", Short: "Reject a request, also your own",
		Long:    "Reject a request of another person, or take back your own. It is not carried out.",
		Example: "  gozzard request reject 3", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.decideRequest(cmd.Context(), args[0], "rejected", "")
		},
	}
}

// decideRequest approves or rejects a request and prints what came of it.
func (env *cliEnv) decideRequest(ctx context.Context, number, state, digest string) error {
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 {
		return usage("%q is not the number of a request", number)
	}
	c, err := env.connect()
	if err != nil {
		return err
	}
	defer c.Close()

	r, err := c.DecideRequest(ctx, id, state, digest)
	if err != nil {
		return withExitCode(err)
	}
	text := r.State
	if r.Result != "" {
		text += ", " + r.Result
	}
	return env.say("request %d: %s\n", r.ID, printable(text))
}
