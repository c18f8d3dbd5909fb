package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// oneProcess are the flags of verbs that ask one host about one process.
type oneProcess struct {
	namespace string
	host      string
}

// oneName accepts the name of one process.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("give the name of one process: %s NAME", cmd.CommandPath())
	}
	return nil
}

func (o *oneProcess) register(f *pflag.FlagSet) {
	f.StringVarP(&o.namespace, "namespace", "n", "",
		"`NAMESPACE` of the process; required when several namespaces have this name")
	f.StringVar(&o.host, "host", "",
		"`HOST` as cloud:ip, an IP address, a host name or an agent id; required when the process is on several hosts")
}

// with calls ask with the only process and host that match the flags, and with a client for them.
func (o *oneProcess) with(ctx context.Context, env *cliEnv, name string,
	ask func(c *client.Client, key gozzard.Key, host string) error) error {
	if o.host != "" {
		if _, err := parseHostFlag(o.host); err != nil {
			return err
		}
	}

	return env.withClient(func(c *client.Client) error {
		key, host, err := o.find(ctx, c, name)
		if err != nil {
			return err
		}
		return ask(c, key, host)
	})
}

// find finds the only process and host that match the flags. It asks the server, unless the flags name both.
func (o *oneProcess) find(ctx context.Context, c *client.Client, name string) (gozzard.Key, string, error) {
	if o.namespace != "" && o.host != "" {
		return gozzard.Key{Namespace: o.namespace, Name: name}, o.host, nil
	}

	q := client.ProcessQuery{Names: []string{name}}
	if o.namespace != "" {
		q.Namespaces = []string{o.namespace}
	}
	if o.host != "" {
		q.Hosts = []string{o.host}
	}

	page, err := c.Processes(ctx, q, 0, 5)
	if gozzard.KindOf(err) == gozzard.ErrInvalid && strings.ContainsAny(name, "/#") { // servers of earlier versions reject these
		page, err = client.ProcessPage{}, nil
	}
	if err == nil && page.Count == 0 {
		page.Processes, err = o.findShown(ctx, c, name)
		page.Count = len(page.Processes)
	}

	switch {
	case err != nil:
		return gozzard.Key{}, "", err
	case page.Count == 0:
		return gozzard.Key{}, "", sought{namespaces: q.Namespaces, names: q.Names, hosts: q.Hosts}.noMatch(ctx, c)
	case page.Count > 1:
		var found []string
		for _, p := range page.Processes[:min(len(page.Processes), 5)] {
			found = append(found, placed(catalogueIn(ctx), printable(p.Namespace+"/"+p.Name), refName(p.Host)))
		}
		return gozzard.Key{}, "", usage("%d processes match, such as %s: choose one with -n and --host", page.Count,
			words(found))
	}

	p := &page.Processes[0]
	return gozzard.Key{Namespace: p.Namespace, Name: p.Name}, string(p.Host.Agent), nil
}
