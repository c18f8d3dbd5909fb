package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// grantFlags are the flags that describe one grant.
type grantFlags struct {
	role       string
	businesses []int
	namespaces []string
	clouds     []int
	nets       []string
	actions    []string
	accounts   []string
	anyHost    bool
}

func (g *grantFlags) register(f *pflag.FlagSet) {
	f.StringVar(&g.role, "role", "", "`ROLE`: viewer, operator, admin or enroller")
	f.IntSliceVar(&g.businesses, "biz", nil, "only this `BUSINESS`; may be repeated")
	f.StringSliceVar(&g.namespaces, "namespace", nil,
		"only namespaces like this `PATTERN` with * and ?; may be repeated")
	f.IntSliceVar(&g.clouds, "cloud", nil, "only hosts of this `CLOUD` area; may be repeated")
	f.StringSliceVar(&g.nets, "net", nil,
		"only hosts with an address in this `NETWORK` such as 10.1.0.0/16; may be repeated")
	f.StringSliceVar(&g.actions, "action", nil, "only this `ACTION` of an operator: start, stop, restart, reload, "+
		"kill, query, manage, unmanage, register, update, unregister, configure, script, transfer or restart-agent; may be repeated")
	g.registerScope(f)
}

// registerScope registers the flags that a grant must have beside its role.
func (g *grantFlags) registerScope(f *pflag.FlagSet) {
	f.BoolVar(&g.anyHost, "any-host", false, "a grant by --namespace reaches every host")
	f.StringSliceVar(&g.accounts, "account", nil,
		"commands may run as this `ACCOUNT`; * is every account but root, root needs its name; may be repeated")
}

// narrowed reports whether a flag limits the grant to a part of the fleet.
func (g *grantFlags) narrowed() bool {
	return len(g.businesses)+len(g.namespaces)+len(g.clouds)+len(g.nets)+len(g.actions)+len(g.accounts) > 0 || g.anyHost
}

func (g *grantFlags) grant() client.Grant {
	grant := client.Grant{Role: g.role, Businesses: g.businesses, Namespaces: g.namespaces, Clouds: g.clouds,
		Nets: g.nets, Actions: g.actions, Accounts: g.accounts}
	if g.anyHost {
		grant.Hosts = "any"
	}
	return grant
}

// grantPlace is the place of a grant in a request, which nobody types.
var grantPlace = regexp.MustCompile(`^grants?(\[\d+\])?\.?`)

// grantField is the field of a grant that a fault of all of it begins with.
var grantField = regexp.MustCompile(`^([a-z]+)(?:: |：)`)

// withGrantFlags puts the names of flags into the faults of a grant.
func (env *cliEnv) withGrantFlags(err error) error {
	var e *gozzard.Error
	if !errors.As(err, &e) {
		return err
	}
	flags := map[string]string{"role": "--role", "businesses": "--biz", "namespaces": "--namespace", "clouds": "--cloud",
		"nets": "--net", "actions": "--action", "accounts": "--account", "hosts": "--any-host"}
	named := *e
	named.Faults = slices.Clone(e.Faults)
	for i, f := range e.Faults {
		path := grantPlace.ReplaceAllString(f.Path, "")
		if path == f.Path { // it is not about a grant
			continue
		}
		text := env.chinese.Message(f.Text)
		if field := grantField.FindStringSubmatch(text); path == "" && field != nil && flags[field[1]] != "" {
			path, text = field[1], strings.TrimPrefix(text, field[0])
		}
		named.Faults[i] = gozzard.Fault{Path: path, Text: text}
	}
	return withFlags(&named, flags)
}

// newGrantCommand is `gozzard grant`.
func newGrantCommand(env *cliEnv) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grant",
		Short: "Manage the rights of apps and users",
		Long: `Manage grants. A grant is a role on a part of the fleet. A caller does not see anything outside its
grants.

  --biz         processes of businesses, on the hosts that a topology document or the CMDB assigns to them
  --namespace   processes of namespaces, on the hosts of --net and --cloud, or with --any-host on every host
  --net --cloud only hosts with such an address; with --biz only those of the assigned hosts
  --account     accounts that commands may run as. An operator or admin needs them, except an admin of
                the whole fleet. * is every account but root; root needs its name

  viewer     sees processes, hosts and events
  operator   sees and operates; --action allows single actions only, for example start without stop
  admin      everything; an admin of the whole fleet also manages accounts and reads the audit
  enroller   joins hosts, and nothing else

An app acts within its own grants. If it acts for a user that the server knows, it acts within the
grants of both. A user that logs in at the login provider also has the grants of the groups that the
provider names (--oidc-groups-claim), until that login ends. Managing grants needs the role admin on
everything.`,
	}
	cmd.AddCommand(newGrantListCommand(env),
		newGrantChangeCommand(env, "add", "Give a grant to an app, a user or a group", (*client.Client).AddGrant),
		newGrantChangeCommand(env, "remove", "Remove a grant; give the same flags as for add",
			(*client.Client).RemoveGrant),
		newGrantCheckCommand(env), newGrantResolveCommand(env))
	return cmd
}

// newGrantChangeCommand is `gozzard grant add` or `gozzard grant remove`.
func newGrantChangeCommand(env *cliEnv, word, short string,
	change func(*client.Client, context.Context, client.HeldGrant) error) *cobra.Command {
	var grant grantFlags
	var app, user, group string
	cmd := &cobra.Command{
		Use:   word,
		Short: short,
		Example: fmt.Sprintf(`  gozzard grant %[1]s --app shop --role operator --biz 2 --account shop
  gozzard grant %[1]s --user alice --role operator --namespace 'shop*' --net 10.1.0.0/16 --account shop --action start,restart
  gozzard grant %[1]s --group /fleet/operators --role viewer`, word),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			holder := client.HeldGrant{App: app, User: user, Group: group}
			if only := app + user + group; only == "" || only != app && only != user && only != group {
				return usage("--app CODE or --user NAME is required, or --group NAME")
			}
			if grant.role == "" {
				return usage("--role is required: viewer, operator, admin or enroller")
			}
			return env.withClient(func(c *client.Client) error {
				holder.Grant = grant.grant()
				if err := env.withGrantFlags(change(c, cmd.Context(), holder)); err != nil {
					return err
				}
				return env.sayGranted(word, &holder)
			})
		},
	}

	cmd.Flags().StringVar(&app, "app", "", "`CODE` of the app")
	cmd.Flags().StringVar(&user, "user", "", "`NAME` of the user")
	cmd.Flags().StringVar(&group, "group", "", "`NAME` of a group at the login provider")
	grant.register(cmd.Flags())
	return cmd
}

// sayGranted says which grant was added or removed.
func (env *cliEnv) sayGranted(word string, g *client.HeldGrant) error {
	text := printable(grantsText([]client.Grant{g.Grant}))
	if word == "remove" {
		return env.say("removed from %s: %s\n", printable(holderText(g)), text)
	}
	return env.say("added for %s: %s\n", printable(holderText(g)), text)
}

// holderText names who has a grant.
func holderText(g *client.HeldGrant) string {
	switch {
	case g.Group != "":
		return "group " + g.Group
	case g.User != "":
		return "user " + g.User
	}
	return "app " + g.App
}

// newGrantListCommand is `gozzard grant list`.
func newGrantListCommand(env *cliEnv) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all grants",
		Example: `  gozzard grant list
  gozzard grant list -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			return env.withClient(func(c *client.Client) error {
				list, err := c.Grants(cmd.Context())
				if err != nil {
					return err
				}
				if output.structured() {
					return output.write(env.out, list)
				}

				t := newTable("HOLDER", "GRANT")
				for _, g := range list.Grants {
					t.add(holderText(&g), grantsText([]client.Grant{g.Grant}))
				}

				return t.write(env.out)
			})
		},
	}

	output.register(cmd, cmd.Flags(), "table", "json", "yaml")
	return cmd
}

// grantsText is a list of grants as one cell of a table.
func grantsText(list []client.Grant) string {
	words := make([]string, 0, len(list))
	for _, g := range list {
		text := g.Role
		add := func(name string, n int, values any) {
			if n > 0 {
				text += " " + name + "=" + strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ",")
			}
		}
		add("biz", len(g.Businesses), g.Businesses)
		add("namespace", len(g.Namespaces), g.Namespaces)
		add("cloud", len(g.Clouds), g.Clouds)
		add("net", len(g.Nets), g.Nets)
		add("action", len(g.Actions), g.Actions)
		if g.Hosts == "any" {
			text += " any-host"
		}
		add("account", len(g.Accounts), g.Accounts)
		words = append(words, text)
	}

	return strings.Join(words, "; ")
}
