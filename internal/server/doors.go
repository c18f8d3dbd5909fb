package server

import (
	"context"
	"net/http"

	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/audit"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/blueking/gse"
	"github.com/gozzard/gozzard/internal/blueking/gsekit"
	"github.com/gozzard/gozzard/internal/blueking/job"
	"github.com/gozzard/gozzard/internal/console"
	"github.com/gozzard/gozzard/internal/docsite"
)

// The names of BlueKing's doors in the table of routes.
const (
	doorJob    = "job"
	doorGSEKit = "gsekit"
	doorGSE    = "gse"
)

// openDoors makes the APIs, their table of routes, and the handler that serves them behind the limits.
func (s *Server) openDoors(context.Context) error {
	provider, err := s.options.Login.provider()
	if err != nil {
		return err
	}

	book, log, observe := s.accounts.Directory(), s.options.Log, s.metrics.ObserveRequest
	native := api.Options{
		Plane: s.plane, Authenticate: blueking.ByHeaders(book), Carries: blueking.InHeaders, Challenge: blueking.AuthorizationHeader,
		Accounts: s.accounts, Provider: provider, Metrics: s.metrics, Ready: s.plane.Ready, Detail: s.detail, Self: s.self(), Log: log,
		Enrol: s.trust.registry, Join: s.joinScript(), Restore: s.restore, Audit: s.store, Flag: s.fabric.Flag, Releases: s.upgrades,
		Stopping: s.stopping, Rights: book.RightsOf, Keys: keyDesk{s}, Requests: s.second.desk, Holds: s.holdsRoot, Work: s.workOf,
		Proxied: s.plane.guard.Proxied, Live: s.live, Servers: s.serverDesk(), Relays: s.relays.desk, Configs: s.configs, Jobs: s.jobs,
		Notify: s.notify,
	}

	kit := gsekit.Options{Plane: s.plane, Jobs: s.jobs, Configs: s.configs, Auth: book, Log: log, Observe: observe}
	if s.cmdb != nil {
		kit.Flush, kit.CMDB = flusher(s.plane.Plane, s.cmdb), s.cmdbCalls
	}

	routes, err := newRouter(doors(native,
		job.Options{Plane: s.plane, Auth: book, Log: log, Observe: observe}, kit,
		gse.Options{Plane: s.plane, Auth: book, Log: log, Observe: observe})...)
	if err != nil {
		return err
	}

	var traced http.Handler = routes
	if s.telemetry.tracer != nil {
		traced = s.telemetry.tracer.Handler(routes)
	}
	guarded := s.plane.guard.Handler(traced)
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guarded.ServeHTTP(w, r.WithContext(audit.With(r.Context(), s.refusals)))
	})
	if s.options.dev {
		s.handler = onlyLocalHost(s.handler)
	}
	return nil
}

// onlyLocalHost rejects requests that do not name this machine. The credentials of `gozzard dev` are in a file beside
// other work, and its server is open to all programs of this machine, also to browsers.
func onlyLocalHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !auth.LocalHost(r.Host) {
			http.Error(w, "this server answers to localhost and to loopback addresses only: use the URL in dev.json",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// doors makes all doors. The last one, GSE, also answers unknown paths.
func doors(native api.Options, j job.Options, kit gsekit.Options, g gse.Options) []door {
	return []door{
		nativeDoor(api.New(native)),
		consoleDoor(console.New(g.Observe)),
		docsDoor(docsite.New(g.Observe)),
		bluekingDoor(doorJob, job.New(j)),
		bluekingDoor(doorGSEKit, gsekit.New(kit)),
		bluekingDoor(doorGSE, gse.New(g)),
	}
}

// Routes is the table of all routes that a server serves, door by door.
func Routes() ([]Route, error) {
	none, err := auth.New(auth.Config{})
	if err != nil {
		return nil, err
	}

	rt, err := newRouter(doors(api.Options{}, job.Options{Auth: none}, gsekit.Options{Auth: none},
		gse.Options{Auth: none})...)
	if err != nil {
		return nil, err
	}
	return rt.routes(), nil
}
