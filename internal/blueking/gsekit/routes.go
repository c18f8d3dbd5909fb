package gsekit

import (
	"net/http"

	"github.com/gozzard/gozzard/internal/blueking"
)

// The families of paths. On the bus, the body names the business and the job, and every call has its own path. In the
// app, both are in the path.
const (
	familyBus = "bus"
	familyApp = "app"
)

func prefixes() []blueking.Prefix {
	return []blueking.Prefix{
		{Path: "/api/c/compapi/v2/gsekit/api", Family: familyBus},
		{Path: "/v2/gsekit/api", Family: familyBus},
		{Path: "/api/{bk_biz_id}", Family: familyApp},
		{Path: "/o/bk_gsekit/api/{bk_biz_id}", Family: familyApp},
	}
}

func (s *server) routes() []blueking.Route {
	both, bus, app := []string{familyBus, familyApp}, []string{familyBus}, []string{familyApp}
	get, post := []string{http.MethodGet}, []string{http.MethodPost}

	route := func(name, path string, families, methods []string, handle handler) blueking.Route {
		return blueking.Route{
			Name: name, Path: path, Families: families, Methods: methods, Read: methods == nil, Bodiless: true,
			Access: blueking.AccessUser, MaxBody: blueking.MaxBody, Handle: handle.serve,
		}
	}

	return []blueking.Route{
		route("process_status", "process/process_status", both, post, about(s.processStatus)),
		route("flush_process", "process/flush_process", both, post, about(s.flushProcess)),
		route("sync_process_status", "process/sync_process_status", both, post, about(s.syncProcessStatus)),
		route("operate_process", "process/operate_process", both, post, about(s.operateProcess)),

		route("create_job", "job/create_job", bus, post, about(s.createJob)),
		route("job_status", "job/job_status", bus, nil, about(s.jobStatus)),
		route("create_job", "job", app, post, about(s.createJob)),
		route("job_list", "job", both, get, about(s.jobList)),
		route("job_retrieve", "job/{job_id}", both, get, about(s.jobRetrieve)),
		route("job_status", "job/{job_id}/job_status", both, post, about(s.jobStatus)),
		route("job_task", "job/{job_id}/job_task", both, post, about(s.jobTask)),
		route("job_task_statistics", "job/{job_id}/job_task_statistics", both, get, about(s.jobTaskStatistics)),
		route("search_ip", "job/{job_id}/search_ip", both, get, about(s.searchIP)),
		route("retry", "job/{job_id}/retry", both, post, about(s.retry)),

		route("config_template_list", "config_template/config_template_list", bus, nil, about(s.configTemplateList)),
		route("config_template_list", "config_template", app, get, about(s.configTemplateList)),

		route("access_overview", "meta/access_overview", bus, nil, about(s.accessOverview)),
		route("access_overview", "meta/access_overview", app, get, about(s.accessOverview)),
		route("expression_match", "meta/expression_match", both, post, s.expressionMatch),
	}
}
