package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// configRoutes are the routes for the configuration files of businesses.
func configRoutes() []Route {
	biz := Parameter{In: InQuery, Name: "biz", Type: TypeNumber, Meaning: "The id of the business.", Required: true}
	template, job := inPath("template", "The id of the template."), inPath("job", "The id of the job.")
	missing := []gozzard.ErrorKind{gozzard.ErrNotFound}
	conflict := []gozzard.ErrorKind{gozzard.ErrNotFound, gozzard.ErrConflict}
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/config/templates", Access: AccessCaller, serve: (*api).getConfigTemplates,
			Summary: "List the templates of configuration files of a business, by their ids.", Parameters: []Parameter{biz},
			Answers: answers(http.StatusOK, client.ConfigTemplates{}, "The templates.")},

		{Method: http.MethodGet, Path: "/api/v1/config/templates/{template}", Access: AccessCaller, serve: (*api).getConfigTemplate,
			Summary:    "Read a template with the content of its active version, its versions and what it is bound to.",
			Parameters: []Parameter{template, biz},
			Answers:    answers(http.StatusOK, client.ConfigTemplateDetail{}, "The template."), Errors: missing},

		{Method: http.MethodPut, Path: "/api/v1/config/templates", Access: AccessCaller, serve: (*api).putConfigTemplate,
			Summary: "Make a template what the request says, or add it: fields, content and what it is bound to. A new content becomes the " +
				"active version. It needs the right configure on all hosts of the business.",
			Body:    jsonBody(client.ConfigRequest{}),
			Answers: answers(http.StatusOK, client.ConfigApplied{}, "What changed, or would change."), Errors: conflict},

		{Method: http.MethodDelete, Path: "/api/v1/config/templates/{template}", Access: AccessCaller, serve: (*api).deleteConfigTemplate,
			Summary:    "Remove a template and its bindings. Files on hosts stay.",
			Parameters: []Parameter{template, biz}, Answers: nothing(http.StatusOK), Errors: conflict},

		{Method: http.MethodPost, Path: "/api/v1/config/render", Access: AccessCaller, serve: (*api).postConfigRender,
			Summary: "Render the file of a template for one process instance, as a release would write it. Nothing is stored.",
			Body:    jsonBody(client.ConfigRenderRequest{}),
			Answers: answers(http.StatusOK, client.ConfigRendered{}, "The file."), Errors: missing},

		{Method: http.MethodPost, Path: "/api/v1/config/jobs", Access: AccessCaller, serve: (*api).postConfigJob,
			Summary: "Start work on the files of process instances: generate renders and stores them, release writes what was generated last to " +
				"the hosts, diff compares the hosts with what was released last, rollback writes what was released with an earlier version. " +
				"It needs the right configure.",
			Body:    jsonBody(client.ConfigJobRequest{}),
			Answers: answers(http.StatusAccepted, client.ConfigJob{}, "The job is recorded."), Errors: conflict},

		{Method: http.MethodPost, Path: "/api/v1/config/jobs/{job}/stop", Access: AccessCaller, serve: (*api).postConfigStop,
			Summary: "Stop a job, such as a rollout: hosts that it has begun with are completed, and no other file is written. " +
				"It needs the right configure.",
			Parameters: []Parameter{job}, Body: jsonBody(client.ConfigStopRequest{}),
			Answers: answers(http.StatusOK, client.ConfigJob{}, "It is recorded."), Errors: conflict},

		{Method: http.MethodGet, Path: "/api/v1/config/jobs", Access: AccessCaller, serve: (*api).getConfigJobs,
			Summary: "List the jobs on configuration files of a business, the newest first.",
			Parameters: append([]Parameter{biz, {In: InQuery, Name: "template", Type: TypeNumber,
				Meaning: "Only jobs that name this template, by its id, and those that name none: they are about all."}}, pageParams()...),
			Answers: answers(http.StatusOK, client.ConfigJobs{}, "The jobs.")},

		{Method: http.MethodGet, Path: "/api/v1/config/jobs/{job}", Access: AccessCaller, serve: (*api).getConfigJob,
			Summary: "Read a job with its tasks, one for each process instance.", Parameters: []Parameter{job, biz},
			Answers: answers(http.StatusOK, client.ConfigJobDetail{}, "The job."), Errors: missing},
	}
}
