package gsekit

import (
	"net/http"

	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/record"
)

// The families of paths. On the bus, the body names the business and the job, and every call has its own path. In the
// app, both are in the path.
const (
	familyBus = "bus"
	familyApp = "app"
	// familyPage has what the pages of the app ask for without a business.
	familyPage = "page"
)

func prefixes() []blueking.Prefix {
	return []blueking.Prefix{
		{Path: "/api/c/compapi/v2/gsekit/api", Family: familyBus},
		{Path: "/v2/gsekit/api", Family: familyBus},
		{Path: "/api/{bk_biz_id}", Family: familyApp},
		{Path: "/o/bk_gsekit/api/{bk_biz_id}", Family: familyApp},
		{Path: "/meta", Family: familyPage},
		{Path: "/o/bk_gsekit/meta", Family: familyPage},
	}
}

func (s *server) routes() []blueking.Route {
	both, bus, app, page := []string{familyBus, familyApp}, []string{familyBus}, []string{familyApp}, []string{familyPage}
	get, post, put := []string{http.MethodGet}, []string{http.MethodPost}, []string{http.MethodPut}
	const template, version = "config_template/{config_template_id}", "config_version/{config_version_id}"

	route := func(name, path string, families, methods []string, handle handler) blueking.Route {
		return blueking.Route{
			Name: name, Path: path, Families: families, Methods: methods, Read: methods == nil, Bodiless: true,
			Access: blueking.AccessUser, TextQuery: true, MaxBody: blueking.MaxBody, Handle: handle.serve,
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
		route("config_template_create", "config_template", app, post, about(s.configTemplateCreate)),
		route("config_template_retrieve", template, both, get, about(s.configTemplateRetrieve)),
		route("config_template_update", template, both, put, about(s.configTemplateUpdate(true))),
		route("config_template_update", template, both, []string{http.MethodPatch}, about(s.configTemplateUpdate(false))),
		route("config_template_delete", template, both, []string{http.MethodDelete}, about(s.configTemplateDelete)),
		route("config_templates_list", "config_template/config_templates_list", both, post, about(s.configTemplatesList)),

		route("create_config_version", template+"/create_config_version", both, post, about(s.createConfigVersion)),
		route("list_version", template+"/list_version", both, get, about(s.listVersion)),
		route("config_version_retrieve", version, both, get, about(s.configVersionRetrieve)),
		route("config_version_update", version, both, put, about(s.configVersionUpdate)),
		route("config_version_clone", version+"/clone", both, post, about(s.configVersionClone)),

		route("preview", "config_version/preview", both, post, about(s.preview)),

		route("generate_config", "config_template/generate_config", both, post, about(s.configJob(record.WorkGenerate))),
		route("release_config", "config_template/release_config", both, post, about(s.configJob(record.WorkRelease))),
		route("diff_config", "config_template/diff_config", both, post, about(s.configJob(record.WorkDiff))),
		route("sync_generate_config", template+"/sync_generate_config", both, post, about(s.syncGenerateConfig)),
		route("list_config_instances", "config_instance/list_config_instances", both, post, about(s.listConfigInstances)),
		route("latest_config_instance", "config_instance/latest_config_instance", both, get, about(s.latestConfigInstance)),
		route("config_instance_retrieve", "config_instance/{config_instance_id}", both, get, about(s.configInstanceRetrieve)),

		route("bind_template_to_process", template+"/bind_template_to_process", both, post, about(s.bindTemplateToProcess)),
		route("bind_process_to_template", "config_template/bind_process_to_template", both, post, about(s.bindProcessToTemplate)),
		route("list_binding_relationship", template+"/list_binding_relationship", both, get, about(s.listBindingRelationship)),

		route("process_instance_simple", "process/process_instance_simple", both, post, about(s.processInstanceSimple)),
		route("process_instance", "process/process_instance", both, get, about(s.processInstance)),
		route("process_template", "process/process_template", both, get, about(s.processTemplate)),

		route("create_process_instance", "process/create_process_instance", both, post, about(s.createProcessInstance)),
		route("update_process_instance", "process/update_process_instance", both, post, about(s.updateProcessInstance)),
		route("delete_process_instance", "process/delete_process_instance", both, post, about(s.deleteProcessInstance)),
		route("create_process_template", "process/create_process_template", both, post, about(s.createProcessTemplate)),
		route("update_process_template", "process/update_process_template", both, post, about(s.updateProcessTemplate)),
		route("delete_process_template", "process/delete_process_template", both, post, about(s.deleteProcessTemplate)),

		route("biz_list", "cmdb/biz_list", both, get, s.bizList),
		route("biz_topo", "cmdb/biz_topo", both, get, about(s.bizTopo)),
		route("set_list", "cmdb/set_list", both, get, about(s.setList)),
		route("module_list", "cmdb/module_list", both, post, about(s.moduleList)),
		route("service_instance", "cmdb/service_instance", both, post, about(s.serviceInstance)),
		route("service_template", "cmdb/service_template", both, get, about(s.serviceTemplate)),
		route("biz_global_variables", "cmdb/biz_global_variables", both, get, about(s.bizGlobalVariables)),
		route("search_object_attribute", "cmdb/search_object_attribute", both, get, about(s.searchObjectAttribute)),
		route("list_process_related_info", "cmdb/list_process_related_info", both, post, about(s.listProcessRelatedInfo)),
		route("check_service_template_difference", "cmdb/check_service_template_difference", both, get, about(s.templateDiffers)),
		route("batch_check_service_template_difference", "cmdb/batch_check_service_template_difference", both, get,
			about(s.templatesDiffer)),

		route("job_filter_choices", "meta/job_filter_choices", both, get, about(s.jobFilterChoices)),
		route("variables", "meta/variables", both, get, about(s.jobFilterChoices)),
		route("process_filter_choices", "meta/process_filter_choices", both, get, about(s.processFilterChoices)),
		route("job_task_filter_choices", "meta/job_task_filter_choices", both, get, about(s.jobTaskFilterChoices)),
		route("get_user_info", "meta/get_user_info", both, get, s.userInfo),
		route("footer", "meta/footer", both, get, s.footer),
		route("users", "meta/users", both, get, s.users),

		route("access_overview", "meta/access_overview", bus, nil, about(s.accessOverview)),
		route("access_overview", "meta/access_overview", app, get, about(s.accessOverview)),
		route("expression_match", "meta/expression_match", both, post, s.expressionMatch),

		route("visit", "visit", page, post, s.visit),
		route("frequency_statistics", "frequency_statistics", page, post, s.frequencyStatistics),
		route("trend_statistics", "trend_statistics", page, post, s.trendStatistics),
		route("job_count_statistics", "job_count_statistics_with_orm", page, post, s.jobCountStatistics),
	}
}
