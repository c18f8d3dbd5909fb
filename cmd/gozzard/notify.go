package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// newNotifyCommand is `gozzard notify`.
func newNotifyCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "Send alerts to webhooks, mail, chats and commands",
		Long: `Alerts are about processes, hosts and tasks: a crash loop, a host that is lost, a limit that is
exceeded, a task that failed, a health check that fails. A receiver is where alerts go, and a
subscription says which alerts go to which receivers. A subscription gets only what its owner may
see.`,
		Example: `  gozzard notify receivers
  gozzard notify subscriptions
  gozzard notify dead-letters`,
	}
	cmd.AddCommand(newReceiversCommand(env), newSubscriptionsCommand(env), newDeadLettersCommand(env))
	return cmd
}

// firstError is err, or else what f returns.
func firstError(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// sayDone prints what was done with a receiver or a subscription, in one line with its name and its id.
func (env *cliEnv) sayDone(format string, n client.NamedID) error {
	return env.say(format, printable(n.Name), printable(n.ID))
}

// sayCreated prints what was made, or its id for programs.
func (env *cliEnv) sayCreated(output *outputFlag, id client.CreatedID, format, name string) error {
	if output.structured() {
		return output.write(env.out, id)
	}
	return env.sayDone(format, client.NamedID{ID: id.ID, Name: name})
}

// withFlags names the flags of a command instead of the settings of a request in the faults of an error.
func withFlags(err error, flags map[string]string) error {
	var e *gozzard.Error
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Faults = slices.Clone(e.Faults)
	for i, f := range e.Faults {
		setting, rest, _ := strings.Cut(f.Path, "[")
		if flag, ok := flags[setting]; ok {
			named.Faults[i].Path = flag
			if rest != "" { // one of a list
				named.Faults[i].Path += " [" + rest
			}
		}
	}
	return &named
}
