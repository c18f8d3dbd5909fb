package main

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/blueking/conform"
)

// conformOptions are the flags of `gozzard conform`.
type conformOptions struct {
	apis       []string
	prefix     string
	host       string
	biz        int
	operate    bool
	account    string
	folder     string
	deviations bool
	output     outputFlag
}

// newConformCommand is `gozzard conform`.
func newConformCommand(env *cliEnv) *cobra.Command {
	var o conformOptions
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Compare a server with the documented APIs of GSE, Job and GSEKit",
		Long: `Send the documented requests of BlueKing's APIs to a server, Gozzard or an original one, and list where
its answers agree with the documents and where they deviate. So you see before a change of servers what
your clients would meet.

The requests read, ask for the state of a process that does not exist, or are incomplete, so that a
server has to reject them. With --operate a real process is registered, started, queried, restarted,
stopped and removed, too: "sleep" on --host, as --account, in --folder, which has to exist there.

RESULT is agrees, deviates, absent (the server does not have the path) or no answer. The exit code is 1
if a request does not agree. A request that the server rejects because it got too many is sent again.`,
		Example: `  gozzard conform --url https://gse.example.org --credentials gse.json
  gozzard conform --api gse,gateway --host 0:10.0.0.5 --deviations
  gozzard conform --operate --host 0:10.0.0.5 --account shop --folder /data/conform`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return env.conform(cmd.Context(), &o) },
	}

	f := cmd.Flags()
	f.StringSliceVar(&o.apis, "api", nil, "only these `APIS`: "+strings.Join(conform.Names, ", "))
	completeFixed(cmd, "api", conform.Names...)
	f.StringVar(&o.prefix, "prefix", "", "only paths that begin with this `TEXT`, such as /api/c/compapi/v2/")
	f.StringVar(&o.host, "host", "0:192.0.2.1", "`HOST` that requests are about, as cloud:ip or an IP address; by default one that does not exist")
	f.IntVar(&o.biz, "biz", 2, "business that requests to Job and GSEKit are about")
	f.BoolVar(&o.operate, "operate", false, "also operate a process; needs --host, --account and --folder")
	f.StringVar(&o.account, "account", "", "`ACCOUNT` of the process of --operate")
	f.StringVar(&o.folder, "folder", "", "`FOLDER` on the host for the process of --operate")
	f.BoolVar(&o.deviations, "deviations", false, "list only requests that do not agree")
	o.output.register(cmd, f, "table", "json", "yaml")
	return cmd
}

// plainFolder is a path that means the same in every shell.
var plainFolder = regexp.MustCompile(`^(/[A-Za-z0-9._-]+)+$`)

// vars checks the flags and makes the values of the requests.
func (o *conformOptions) vars() (conform.Vars, error) {
	if err := o.output.check(); err != nil {
		return nil, err
	}
	for _, api := range o.apis {
		if !slices.Contains(conform.Names, api) {
			return nil, usage("--api %q: use %s", api, words(conform.Names))
		}
	}
	host, err := hostOfConform(o.host)
	if err != nil {
		return nil, err
	}
	switch {
	case o.operate && (o.account == "" || o.folder == "" || o.host == "0:192.0.2.1"):
		return nil, usage("--operate needs --host, --account and --folder: where the process may run")
	case o.operate && (!plainFolder.MatchString(o.folder) || path.Clean(o.folder) != o.folder):
		return nil, usage("--folder %q: use a clean absolute path of letters, digits, dots, _ and -", o.folder)
	}

	vars := conform.NewProcess(o.account, o.folder)
	vars["cloud"], vars["ip"], vars["agent"], vars["biz"] = host.Cloud, host.IP.String(), host.String(), o.biz
	return vars, nil
}

// hostOfConform reads --host. The requests name hosts by their addresses.
func hostOfConform(text string) (gozzard.HostAddr, error) {
	if ip, err := gozzard.ParseIP(text); err == nil {
		return gozzard.HostAddr{IP: ip}, nil
	}
	host, err := gozzard.ParseHostAddr(text)
	if err != nil {
		return host, usage("--host %q: use cloud:ip or an IP address: %w", text, err)
	}
	return host, nil
}

// conform compares a server with the documents.
func (env *cliEnv) conform(ctx context.Context, o *conformOptions) error {
	vars, err := o.vars()
	if err != nil {
		return err
	}
	return env.withClient(func(c *client.Client) error {
		send := func(ctx context.Context, method, path string, header http.Header, body []byte) (int, []byte, error) {
			a, err := c.Raw(ctx, method, path, header, body)
			return a.Status, a.Body, err
		}
		counts, rows := map[string]int{}, []conform.Row{}
		err := conform.Run(ctx, send, conform.Options{APIs: o.apis, Prefix: o.prefix, Vars: vars, Operate: o.operate,
			Pause: 500 * time.Millisecond, Longest: 2 * time.Minute}, func(row conform.Row) error {
			counts[row.Result]++
			if row.Result != conform.Agrees || !o.deviations {
				rows = append(rows, row)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return env.printConform(o, rows, counts)
	})
}

// printConform prints the rows, and fails if something does not agree.
func (env *cliEnv) printConform(o *conformOptions, rows []conform.Row, counts map[string]int) error {
	bad := counts[conform.Deviates] + counts[conform.Absent] + counts[conform.Silent]
	err := env.writeConform(o, rows, counts)
	if err == nil && bad+counts[conform.Agrees] == 0 {
		err = &exitError{exitNoMatch, fmt.Errorf("no documented request has a path that begins with %q", o.prefix)}
	}
	if err == nil && bad > 0 {
		err = &exitError{exitFailed, nil}
	}
	return err
}

func (env *cliEnv) writeConform(o *conformOptions, rows []conform.Row, counts map[string]int) error {
	if o.output.structured() {
		return o.output.write(env.out, map[string]any{"requests": rows, "counts": counts})
	}
	t := newTable("API", "REQUEST", "PATH", "RESULT", "WHAT")
	for _, r := range rows {
		what := []string{}
		for _, d := range r.Deviations {
			what = append(what, env.text("%s: %s where %s is documented", d.Where, d.Got, d.Want))
		}
		if r.Error != "" {
			what = append(what, r.Error)
		}
		t.add(r.API, r.Request, r.Method+" "+r.Path, r.Result, strings.Join(what, "; "))
	}
	if err := t.write(env.out); err != nil {
		return err
	}
	env.remark("%d requests agree, %d deviate, %d are absent, %d got no answer", counts[conform.Agrees], counts[conform.Deviates],
		counts[conform.Absent], counts[conform.Silent])
	return nil
}
