package server

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

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
	"github.com/gozzard/gozzard/internal/cmdb"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/topology"
)

// CMDBOptions say which businesses are read from BlueKing CMDB.
type CMDBOptions struct {
	URL         string // of the BlueKing bus; "": no CMDB
	Credentials string // file
	Businesses  []int  // read again and again; others are read when a caller asks
	Interval    time.Duration
	Prune       bool // also remove processes that are supervised still
}

// openCMDB makes the reader of CMDB.
func (s *Server) openCMDB(context.Context) (err error) {
	client, sync, err := s.options.CMDB.open(s.plane.Plane, s.options.Log)
	if err == nil && client != nil {
		s.cmdb, s.cmdbCalls = sync, &cmdbCalls{client: client, audit: s.store, log: s.options.Log}
	}
	return err
}

// open makes the client and the reader of CMDB; nil when there is none.
func (o *CMDBOptions) open(plane *control.Plane, log *slog.Logger) (*cmdb.Client, *cmdb.Sync, error) {
	if o.URL == "" {
		if o.Credentials != "" || len(o.Businesses) > 0 {
			return nil, nil, errors.New("--cmdb-credentials and --cmdb-biz need --cmdb-url")
		}
		return nil, nil, nil
	}

	for _, biz := range o.Businesses {
		if biz < 1 {
			return nil, nil, fmt.Errorf("--cmdb-biz %d: use the id of a business", biz)
		}
	}

	if o.Interval < time.Second {
		return nil, nil, fmt.Errorf("--cmdb-interval %s: use 1s or more", o.Interval)
	}

	cred, err := o.readCredentials()
	if err != nil {
		return nil, nil, err
	}

	reader, err := cmdb.New(cmdb.Options{URL: o.URL, App: cred.AppCode, Secret: cred.AppSecret, User: cred.Username,
		Log: log})
	if err != nil {
		return nil, nil, fmt.Errorf("--cmdb-url: %w", err)
	}
	if u, err := url.Parse(o.URL); err == nil && u.Scheme == "http" && !isLoopbackName(u.Hostname()) {
		log.Warn("the secret for CMDB is sent without TLS: use https", "url", o.URL)
	}

	return reader, cmdb.NewSync(cmdb.SyncOptions{
		Reader: reader, Businesses: o.Businesses, Caller: gozzard.Caller{App: cred.AppCode, User: cred.Username},
		Interval: o.Interval, Log: log,
		Apply: o.applier(plane, log),
	}), nil
}

func (o *CMDBOptions) readCredentials() (client.Credentials, error) {
	var cred client.Credentials

	if o.Credentials == "" {
		return cred, errors.New("--cmdb-url needs --cmdb-credentials FILE")
	}
	if err := atomicfile.Check(o.Credentials); err != nil {
		return cred, err
	}

	b, err := os.ReadFile(o.Credentials)
	if err != nil {
		return cred, fmt.Errorf("cannot read the credentials of CMDB: %w", err)
	}
	if err := json.Unmarshal(b, &cred); err != nil {
		return cred, fmt.Errorf("cannot read the credentials of CMDB in %s: %w", o.Credentials, err)
	}

	return cred, nil
}

// applier records a business as it was read.
func (o *CMDBOptions) applier(plane *control.Plane, log *slog.Logger) func(context.Context, gozzard.Caller,
	*topology.Business) error {
	return func(ctx context.Context, caller gozzard.Caller, b *topology.Business) error {
		if fromDocument(plane, b.ID) {
			log.Warn("the business comes from a document, so CMDB is not asked about it", "biz", b.ID)
			return nil
		}

		// The rights of the caller were checked before. The data comes from CMDB, so it is applied with full rights.
		caller.Rights = gozzard.Everything()
		done, err := plane.ApplyTopology(ctx, record.ApplyRequest{Caller: caller, Business: b,
			Source: record.SourceCMDB, Prune: o.Prune})
		if err != nil {
			return err
		}

		if done.Applied {
			p := &done.Plan
			log.Info("business read from CMDB", "biz", b.ID, "version", done.Version, "added", len(p.Added),
				"changed", len(p.Changed),
				"removed", len(p.Removed), "unregistering", done.Pruned)
			logLeft(log, b.ID, done.Left)
		}

		return nil
	}
}

// maxLogged bounds the lines about one business.
const maxLogged = 20

// logLeft logs what of a business could not be taken over.
func logLeft(log *slog.Logger, biz int, left []string) {
	for i, line := range left {
		if i == maxLogged {
			log.Warn("more of a business was not taken from CMDB: see gozzard topology list -o json", "biz", biz,
				"count", len(left)-maxLogged)
			return
		}
		log.Warn("part of a business was not taken from CMDB", "biz", biz, "what", line)
	}
}

// flusher reads a business again for a caller. One that comes from a document is always up to date.
func flusher(plane *control.Plane, sync *cmdb.Sync) gsekit.Flush {
	return func(ctx context.Context, caller gozzard.Caller, biz int) ([]string, error) {
		if fromDocument(plane, biz) {
			return nil, nil
		}
		err := sync.Flush(ctx, caller, biz)
		return headOf(plane, biz).Left, err
	}
}

func fromDocument(plane *control.Plane, biz int) bool {
	return headOf(plane, biz).Source == record.SourceFile
}

// headOf is a business as this server knows it; the zero value if it knows none.
func headOf(plane *control.Plane, biz int) record.BusinessHead {
	for _, h := range plane.Businesses(gozzard.Caller{Rights: gozzard.Everything()}) {
		if h.ID == biz {
			return h
		}
	}
	return record.BusinessHead{}
}

func isLoopbackName(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
