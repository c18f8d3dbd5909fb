package main

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard/client"
)

// newReceiversCommand is `gozzard notify receivers`.
func newReceiversCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "receivers",
		Short: "List the receivers of alerts",
		Long: `List the receivers that your subscriptions may use. Secrets are not shown, and of a URL only the host.
An admin of everything sees all receivers, others see those that are shared. The id of a command begins
with "command:": commands are programs in the folder of the server's flag --notify-commands.

An admin of everything also sees how many messages wait for a receiver, how many are dead letters, and
for a receiver that fails, when the next try is and what the last error was.`,
		Example: `  gozzard notify receivers
  gozzard notify receivers -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.Receivers(cmd.Context())
				if err != nil || output.structured() {
					return firstError(err, func() error { return output.write(env.out, list) })
				}
				return env.printReceivers(list.Receivers)
			})
		},
	}
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	cmd.AddCommand(newReceiverCreateCommand(env), newReceiverChangeCommand(env), newReceiverTestCommand(env),
		env.accountCommand("remove RECEIVER", "Remove a receiver of alerts",
			`Remove a receiver by its id or name, and the messages that wait for it. No subscription may use it. This needs
the role admin on everything.`, "  gozzard notify receivers remove pager",
			func(ctx context.Context, c *client.Client, id string) error {
				n, err := c.RemoveReceiver(ctx, id)
				return firstError(err, func() error { return env.sayDone("receiver %s removed, id %s\n", n) })
			}))
	return cmd
}

// printReceivers prints receivers as a table. Only admins of everything see what waits.
func (env *cliEnv) printReceivers(list []client.Receiver) error {
	t := newTable("NAME", "ID", "KIND", "SHARED", "TO", "WAITING", "DEAD", "NEXT TRY", "LAST ERROR")
	for i := range list {
		r := &list[i]
		waiting, dead, next, last := "-", "-", "-", "-"
		if b := r.Backlog; b != nil {
			waiting, dead = strconv.Itoa(b.Waiting), strconv.Itoa(b.DeadLetters)
			if b.LastError != "" {
				next, last = until(env.now(), b.NextTry.Time), printable(env.chinese.Message(b.LastError))
			}
		}
		t.add(printable(r.Name), printable(r.ID), r.Kind, strconv.FormatBool(r.Shared), printable(receiverPlace(r)), waiting, dead,
			next, last)
	}
	return t.write(env.out)
}

func receiverPlace(r *client.Receiver) string {
	switch {
	case r.Settings == nil:
		return "-"
	case r.Settings.Server != "":
		return strings.Join(r.Settings.To, ",")
	}
	return r.Settings.URL
}

// receiverFiles are the files that have the secrets of a receiver: they are in no argument, because other accounts of the
// machine can read those.
type receiverFiles struct{ url, secret, authorization, password, ca string }

// newReceiverCreateCommand is `gozzard notify receivers create`.
func newReceiverCreateCommand(env *cliEnv) *cobra.Command {
	var req client.ReceiverRequest
	var files receiverFiles
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a receiver of alerts",
		Long: `Make a receiver. The kinds are webhook (in Alertmanager's format), alertmanager (Alertmanager itself),
mail, wecom, dingtalk, feishu and slack. Secrets are read from files that only their owner may read; the
secret of a webhook has at least 16 bytes. The URL of a robot is a secret, too: use --to-url-file. This
needs the role admin on everything.`,
		Example: `  gozzard notify receivers create pager --receiver-kind webhook --to-url https://pager.example.com/ --secret-file secret
  gozzard notify receivers create group --receiver-kind wecom --to-url-file robot-url --language zh --shared
  gozzard notify receivers create night --receiver-kind mail --mail-server mail.example.com:587 --from gozzard@example.com --mail-to night@example.com`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			req.Name = args[0]
			if !cmd.Flags().Changed("language") && env.chinese != nil {
				req.Language = "zh"
			}
			if err := files.read(&req); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				id, err := c.CreateReceiver(cmd.Context(), req)
				return firstError(withFlags(err, files.flags()), func() error { return env.sayCreated(&output, id, "receiver %s created, id %s\n", req.Name) })
			})
		},
	}

	f := cmd.Flags()
	f.StringVar(&req.Kind, "receiver-kind", "", "`KIND` of the receiver: webhook, alertmanager, mail, wecom, dingtalk, feishu or slack")
	files.register(f, &req)
	output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

// register adds the flags of settings that can also be changed.
func (s *receiverFiles) register(f *pflag.FlagSet, req *client.ReceiverRequest) {
	f.BoolVar(&req.Shared, "shared", false, "subscriptions of everybody may use it, not only those of admins")
	f.StringVar(&req.URL, "to-url", "", "`URL` of the receiver")
	f.StringVar(&s.url, "to-url-file", "", "`FILE` with the URL, if that is a secret")
	f.StringVar(&s.secret, "secret-file", "", "`FILE` with the secret of signatures")
	f.StringVar(&s.authorization, "authorization-file", "", "`FILE` with the value of the header Authorization")
	f.StringVar(&s.ca, "ca-file", "", "`FILE` with the authorities (PEM) of the receiver (default: those of the system)")
	f.StringVar(&req.Language, "language", "", "`LANGUAGE` of messages: en or zh (default of a new receiver: the one of this shell)")
	f.StringVar(&req.Server, "mail-server", "", "mail server, as `HOST:PORT`")
	f.StringVar(&req.TLS, "tls", "", "how mail is encrypted: `starttls`, tls or none; none is for this machine only (default starttls)")
	f.StringVar(&req.User, "mail-user", "", "`USER` of the mail server")
	f.StringVar(&s.password, "mail-password-file", "", "`FILE` with the password of --mail-user")
	f.StringVar(&req.From, "from", "", "`ADDRESS` that mail comes from")
	f.StringSliceVar(&req.To, "mail-to", nil, "`ADDRESSES` that mail goes to")
}

// newReceiverChangeCommand is `gozzard notify receivers change`.
func newReceiverChangeCommand(env *cliEnv) *cobra.Command {
	var req client.ReceiverRequest
	var files receiverFiles
	cmd := &cobra.Command{
		Use:   "change RECEIVER",
		Short: "Change settings of a receiver of alerts",
		Long: `Change settings of a receiver, by its id or name. Settings that you do not give stay as they are, secrets
included. An empty value removes a setting: --secret-file ''. The kind of a receiver cannot change.

Secrets do not follow a receiver to another place: if you change its URL, its mail server, --tls,
--mail-user or --ca-file, give its secrets again. What waits goes to the new place. This needs the role
admin on everything.`,
		Example: `  gozzard notify receivers change pager --language zh
  gozzard notify receivers change pager --to-url https://pager.example.com/v2 --secret-file secret`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := files.read(&req); err != nil {
				return err
			}
			change, given := receiverChange(cmd.Flags(), &req)
			if !given {
				return usage("nothing to change: give at least one setting")
			}
			return env.withClient(func(c *client.Client) error {
				n, err := c.ChangeReceiver(cmd.Context(), args[0], change)
				return firstError(withFlags(err, files.flags()), func() error { return env.sayDone("receiver %s changed, id %s\n", n) })
			})
		},
	}

	cmd.Flags().StringVar(&req.Name, "name", "", "new `NAME` of the receiver")
	files.register(cmd.Flags(), &req)
	return cmd
}

// receiverChange has the settings that were given as flags.
func receiverChange(f *pflag.FlagSet, req *client.ReceiverRequest) (c client.ReceiverChange, given bool) {
	for _, v := range []struct {
		flags []string
		from  *string
		to    **string
	}{{[]string{"name"}, &req.Name, &c.Name}, {[]string{"to-url", "to-url-file"}, &req.URL, &c.URL},
		{[]string{"secret-file"}, &req.Secret, &c.Secret}, {[]string{"authorization-file"}, &req.Authorization, &c.Authorization},
		{[]string{"ca-file"}, &req.CA, &c.CA}, {[]string{"language"}, &req.Language, &c.Language},
		{[]string{"mail-server"}, &req.Server, &c.Server}, {[]string{"tls"}, &req.TLS, &c.TLS},
		{[]string{"mail-user"}, &req.User, &c.User}, {[]string{"mail-password-file"}, &req.Password, &c.Password},
		{[]string{"from"}, &req.From, &c.From}} {
		if slices.ContainsFunc(v.flags, f.Changed) {
			*v.to, given = v.from, true
		}
	}
	if f.Changed("shared") {
		c.Shared, given = &req.Shared, true
	}
	if f.Changed("mail-to") {
		c.To, given = req.To, true
	}
	return c, given
}

// newReceiverTestCommand is `gozzard notify receivers test`.
func newReceiverTestCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "test RECEIVER",
		Short: "Send a test message to a receiver",
		Long: `Send a test message to a receiver at once, by its id or name, and print what was sent where. If it does
not arrive, the error says why. If it arrives, messages that wait for the receiver are sent at once, too.
This needs the role admin on everything.`,
		Example: `  gozzard notify receivers test pager
  gozzard notify receivers test command:page`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				t, err := c.TestReceiver(cmd.Context(), args[0])
				if err != nil || output.structured() {
					return firstError(err, func() error { return output.write(env.out, t) })
				}
				if err := env.say("the receiver %s (%s) took a test message at %s\n", printable(t.Name), t.Kind,
					printable(t.To)); err != nil || t.Waiting == 0 {
					return err
				}
				return env.say("%d messages that waited are sent now\n", t.Waiting)
			})
		},
	}
	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// flags are those of the settings of a receiver.
func (s *receiverFiles) flags() map[string]string {
	flags := map[string]string{"kind": "--receiver-kind", "shared": "--shared", "url": "--to-url", "secret": "--secret-file",
		"authorization": "--authorization-file", "ca": "--ca-file", "language": "--language", "server": "--mail-server",
		"tls": "--tls", "user": "--mail-user", "password": "--mail-password-file", "from": "--from", "to": "--mail-to"}
	if s.url != "" {
		flags["url"] = "--to-url-file"
	}
	return flags
}

// read reads the files.
func (s *receiverFiles) read(req *client.ReceiverRequest) error {
	for _, f := range []struct {
		path string
		to   *string
	}{{s.url, &req.URL}, {s.secret, &req.Secret}, {s.authorization, &req.Authorization}, {s.password, &req.Password}} {
		if f.path == "" {
			continue
		}
		b, err := readSecret(f.path)
		if err != nil {
			return err
		}
		if *f.to = strings.TrimSpace(string(b)); *f.to == "" {
			return usage("%s is empty: it must have the value in one line", f.path)
		}
	}
	if s.ca == "" {
		return nil
	}
	b, err := os.ReadFile(s.ca)
	if req.CA = string(b); err == nil && req.CA == "" {
		return usage("%s is empty: it must have certificates in PEM", s.ca)
	}
	return err
}
