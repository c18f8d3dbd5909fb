package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/cmdb"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// cmdbConfig says where businesses are read from, besides documents.
type cmdbConfig struct {
	url         string // "": no CMDB
	credentials string // file
	businesses  []int
	interval    time.Duration
	prune       bool
}

func (c *cmdbConfig) register(f *pflag.FlagSet) {
	f.StringVar(&c.url, "cmdb-url", "",
		"`URL` of the BlueKing bus whose CMDB knows the businesses, such as https://paas.example.com")
	f.StringVar(&c.credentials, "cmdb-credentials", "",
		"JSON `FILE` with bk_app_code, bk_app_secret and bk_username for CMDB, readable by its owner only")
	f.IntSliceVar(&c.businesses, "cmdb-biz", nil,
		"`ID` of a business to read from CMDB again and again; may be repeated")
	f.DurationVar(&c.interval, "cmdb-interval", 10*time.Minute, "how often each of these businesses is read")
	f.BoolVar(&c.prune, "cmdb-prune", false,
		"also remove processes that are gone from CMDB and still hosted: they are unregistered and left running")
}

// open makes the reader of CMDB; nil when there is none.
func (c *cmdbConfig) open(plane *control.Plane, log *slog.Logger) (*cmdb.Sync, error) {
	if c.url == "" {
		if c.credentials != "" || len(c.businesses) > 0 {
			return nil, errors.New("--cmdb-credentials and --cmdb-biz need --cmdb-url")
		}
		return nil, nil
	}

	for _, biz := range c.businesses {
		if biz < 1 {
			return nil, fmt.Errorf("--cmdb-biz %d: use the id of a business", biz)
		}
	}

	if c.interval < time.Second {
		return nil, fmt.Errorf("--cmdb-interval %s: use 1s or more", c.interval)
	}

	who, err := c.readCredentials()
	if err != nil {
		return nil, err
	}

	reader, err := cmdb.New(cmdb.Options{URL: c.url, App: who.AppCode, Secret: who.AppSecret, User: who.Username,
		Log: log})
	if err != nil {
		return nil, fmt.Errorf("--cmdb-url: %w", err)
	}
	if u, err := url.Parse(c.url); err == nil && u.Scheme == "http" && !isLoopbackName(u.Hostname()) {
		log.Warn("the secret of CMDB goes over the network in the clear: use https", "url", c.url)
	}

	return cmdb.NewSync(cmdb.SyncOptions{
		Reader: reader, Businesses: c.businesses, Caller: gozzard.Caller{App: who.AppCode, User: who.Username},
		Interval: c.interval, Log: log,
		Apply: c.applier(plane, log),
	}), nil
}

func (c *cmdbConfig) readCredentials() (client.Credentials, error) {
	var who client.Credentials

	if c.credentials == "" {
		return who, errors.New("--cmdb-url needs --cmdb-credentials FILE")
	}
	if err := atomicfile.Check(c.credentials); err != nil {
		return who, err
	}

	b, err := os.ReadFile(c.credentials)
	if err != nil {
		return who, fmt.Errorf("cannot read the credentials of CMDB: %w", err)
	}
	if err := json.Unmarshal(b, &who); err != nil {
		return who, fmt.Errorf("cannot read the credentials of CMDB in %s: %w", c.credentials, err)
	}

	return who, nil
}

// applier makes the record like what was read.
func (c *cmdbConfig) applier(plane *control.Plane, log *slog.Logger) func(context.Context, gozzard.Caller,
	*topology.Business) error {
	return func(ctx context.Context, caller gozzard.Caller, b *topology.Business) error {
		if fromDocument(plane, b.ID) {
			log.Warn("a business is kept by a document, CMDB is not asked about it", "biz", b.ID)
			return nil
		}

		caller.Rights = gozzard.Everything() // who asked for it was asked for his; what comes is the source's word
		done, err := plane.ApplyTopology(ctx, record.ApplyRequest{Caller: caller, Business: b,
			Source: record.SourceCMDB, Prune: c.prune})
		if err != nil {
			return err
		}

		if done.Applied {
			p := &done.Plan
			log.Info("a business was read from CMDB", "biz", b.ID, "version", done.Version, "added", len(p.Added),
				"changed", len(p.Changed),
				"removed", len(p.Removed), "unregistering", done.Pruned)
		}

		return nil
	}
}

// flusher answers callers that want a business up to date: one that is kept by a document always is.
func flusher(plane *control.Plane, sync *cmdb.Sync) func(context.Context, gozzard.Caller, int) error {
	return func(ctx context.Context, caller gozzard.Caller, biz int) error {
		if fromDocument(plane, biz) {
			return nil
		}
		return sync.Flush(ctx, caller, biz)
	}
}

func fromDocument(plane *control.Plane, biz int) bool {
	for _, h := range plane.Businesses(gozzard.Caller{Rights: gozzard.Everything()}) {
		if h.ID == biz {
			return h.Source == record.SourceFile
		}
	}
	return false
}

func isLoopbackName(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
