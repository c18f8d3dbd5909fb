package server

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/gozzard/gozzard/internal/atomicfile"
	"github.com/gozzard/gozzard/internal/auditexport"
)

// ExportOptions say where the rows of the audit go as they are written. The zero value sends them nowhere.
type ExportOptions struct {
	Syslog auditexport.SyslogOptions

	Webhook       string // URL
	WebhookSecret string // file with the key of the signatures
	WebhookCA     string // file of authorities

	File     string
	FileSize int // MiB at which it is moved away; 0: never
	FileKeep int // files that were moved away
}

// The names of the exports: of their positions in the record, and of their metrics. They are stored.
const (
	exportSyslog  = "syslog"
	exportWebhook = "webhook"
	exportFile    = "file"
)

// openExports makes the exporters of the audit.
func (s *Server) openExports(context.Context) error {
	o := &s.options.Export
	if o.Syslog.Address != "" {
		sink, err := auditexport.NewSyslog(o.Syslog)
		if err != nil {
			return err
		}
		s.export(exportSyslog, sink)
	}

	if o.Webhook != "" {
		if err := atomicfile.Check(o.WebhookSecret); err != nil {
			return fmt.Errorf("--audit-webhook-secret-file: %w", err)
		}
		secret, err := os.ReadFile(o.WebhookSecret)
		if err != nil {
			return fmt.Errorf("--audit-webhook-secret-file: %w", err)
		}
		sink, err := auditexport.NewWebhook(auditexport.WebhookOptions{URL: o.Webhook, Secret: secret, CA: o.WebhookCA})
		if err != nil {
			return err
		}
		s.export(exportWebhook, sink)
	}

	if o.File != "" {
		sink, err := auditexport.NewFile(o.File, int64(o.FileSize)<<20, o.FileKeep)
		if err != nil {
			return err
		}
		s.export(exportFile, sink)
	}
	return nil
}

func (s *Server) export(name string, sink auditexport.Sink) {
	e := auditexport.New(auditexport.Options{Name: name, Store: s.store, Sink: sink, Log: s.options.Log,
		Observe: s.metrics.AuditExported})
	s.exports = append(s.exports, e)
	s.onClose("cannot close an export of the audit", e.Close)
}

// detail is what an admin must look at; "" when there is nothing.
func (s *Server) detail() string {
	var list []string
	if text := s.pages.Detail(); text != "" {
		list = append(list, text)
	}
	for _, e := range s.exports {
		if text := e.Detail(); text != "" {
			list = append(list, text)
		}
	}
	return strings.Join(list, "; ")
}
