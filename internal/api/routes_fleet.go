package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// taskErrors are the errors of a request that creates a task, beside the common ones.
func taskErrors() []gozzard.ErrorKind {
	return []gozzard.ErrorKind{gozzard.ErrNotFound, gozzard.ErrConflict, gozzard.ErrStorageFull}
}

// idempotency is the header by which the server recognises a repeated request.
func idempotency() []Parameter {
	return []Parameter{inHeader("Idempotency-Key",
		"1 to 255 printable ASCII characters; requests with the same key create one task.")}
}

func operationRoutes() []Route {
	recorded := append(answers(http.StatusAccepted, client.Accepted{},
		"The task is recorded. Location is the path of the task."),
		answers(http.StatusOK, client.Preview{}, "With dry_run: what the request would do. Nothing was done.")...)
	return []Route{
		{Method: http.MethodPost, Path: "/api/v1/operations", Access: AccessCaller, serve: (*api).postOperation,
			Summary:    "Start, stop, restart, reload, kill, supervise, stop supervising or query processes.",
			Parameters: idempotency(), Body: jsonBody(client.OperationRequest{}), Answers: recorded, Errors: taskErrors()},

		{Method: http.MethodPut, Path: "/api/v1/processes", Access: AccessCaller, serve: (*api).putProcess,
			Summary:    "Register a process on hosts, or replace its definition.",
			Parameters: idempotency(), Body: jsonBody(client.RegisterRequest{}), Answers: recorded, Errors: taskErrors()},

		{Method: http.MethodDelete, Path: "/api/v1/processes", Access: AccessCaller, serve: (*api).deleteProcesses,
			Summary:    "Remove the definitions of processes from hosts; running processes keep running.",
			Parameters: idempotency(), Body: jsonBody(client.UnregisterRequest{}), Answers: recorded, Errors: taskErrors()},

		{Method: http.MethodGet, Path: "/api/v1/tasks", Access: AccessCaller, serve: (*api).getTasks,
			Summary: "List the newest tasks that the caller may read, the newest first. The server looks at a limited number of " +
				"tasks for one page, so a page may have fewer than limit, or none, although there are more.",
			Parameters: []Parameter{
				text("since", "The time of the oldest task, as RFC 3339 or in Unix milliseconds."),
				texts("action", "An action, such as start or register; update is another word for register."),
				text("user", "The user that sent the request."),
				text("app", "The app that sent the request. Tasks of other apps are not listed."),
				flag("mine", "Only tasks of the caller."),
				texts("namespace", "A namespace, or a pattern with * and ?."),
				texts("name", "A name, or a pattern with * and ?."),
				texts("host", "A host: cloud:ip, an IP address, a host name or an agent id."),
				text("state", `"running": an attempt has no verdict yet; "failed": an attempt failed; "done": every attempt has `+
					`its verdict, and none failed.`),
				text("before", "Only older tasks: a task id, or next of the page before."),
				number("limit", "The largest number of tasks, from 1 to 1000; 100 when missing."),
			},
			Answers: answers(http.StatusOK, client.TaskPage{}, "One page of the tasks.")},

		{Method: http.MethodGet, Path: "/api/v1/tasks/{id}", Access: AccessCaller, serve: (*api).getTask,
			Summary: "Read the progress of a task. With its ETag in If-None-Match the answer is 304 while nothing has changed. A large " +
				"answer is compressed by gzip if the header Accept-Encoding allows it.",
			Parameters: []Parameter{
				inPath("id", "The id of the task."),
				text("wait", "How long to wait for the task to become final, from 0s to 30s, such as 5s."),
				text("show", `Which attempts are listed: "all" (the default), "failed" or "none". Counts cover all attempts.`),
				number("limit", "List the attempts in pages, at most so many in each, from 1 to 1000; 100 when only a cursor is given. Without limit "+
					"and cursor all attempts are listed."),
				text("cursor", "Go on with next of the page before. The attempts of a task keep their order: none is missed or listed twice while "+
					`verdicts arrive. With show "failed" a page ends before the first attempt without a verdict.`),
			},
			Answers: append(answers(http.StatusOK, client.Task{}, "The task."),
				Answer{Status: http.StatusNotModified, Meaning: "The caller has this answer already."}),
			Errors: []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodPost, Path: "/api/v1/tasks/{id}/retry", Access: AccessCaller, serve: (*api).postRetry,
			Summary: "Repeat the failed attempts of a task as a new task. Attempts that are running, or that a newer operation " +
				"replaced, are not repeated. Rights and confirmations are those of a new operation.",
			Parameters: append([]Parameter{inPath("id", "The id of the task.")}, idempotency()...),
			Body:       jsonBody(client.RetryRequest{}),
			Answers: append(answers(http.StatusAccepted, client.Accepted{},
				"The new task is recorded. Location is the path of the task."),
				answers(http.StatusOK, client.Preview{},
					"Nothing was done: nothing has failed, or with dry_run, what the request would do.")...),
			Errors: taskErrors()},

		{Method: http.MethodPost, Path: "/api/v1/tasks/{id}/cancel", Access: AccessCaller, serve: (*api).postCancel,
			Summary: "Cancel the attempts of a task that were not sent to their hosts. Their verdicts are in the record when the answer " +
				"comes, and they are never sent. What was sent runs on and gets its true verdict. The right is that of the operation, for " +
				"each attempt; if it is missing for one of them, none is cancelled. A retry of the task is a new operation.",
			Parameters: []Parameter{inPath("id", "The id of the task.")},
			Body:       jsonBody(client.CancelRequest{}),
			Answers:    answers(http.StatusOK, client.Cancelled{}, "What became of the attempts."),
			Errors:     taskErrors()},
	}
}

// businessParams select processes by their place in a business.
func businessParams() []Parameter {
	return []Parameter{
		number("biz", "The id of a business: the answer lists its processes, with a row for each instance."),
		text("env", "The environment within the business: 1 or test, 2 or experience, 3 or formal."),
		texts("set", "The id or the name of a set in the business."),
		texts("module", "The id or the name of a module in the business."),
		text("expression", "Five patterns: set.module.service_instance.process_name.process_id."),
	}
}

// eventParams select events.
func eventParams() []Parameter {
	return []Parameter{
		text("since", "The time of the oldest event, as RFC 3339 or in Unix milliseconds."),
		texts("namespace", "A namespace, or a pattern with * and ?."),
		texts("name", "A name, or a pattern with * and ?."),
		texts("host", "A host: cloud:ip, an IP address, a host name or an agent id."),
		oneOf(texts("kind", "A kind of event, such as exited."), eventKinds()),
	}
}

func fleetRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/processes", Access: AccessCaller, serve: (*api).getProcesses,
			Summary: "List processes with their live status, in a stable order.",
			Parameters: slices.Concat([]Parameter{
				texts("namespace", "A namespace, or a pattern with * and ?."),
				texts("name", "A name, or a pattern with * and ?."),
				texts("host", "A host: cloud:ip, an IP address, a host name or an agent id."),
				numbers("cloud", "The number of a cloud area."),
				texts("state", "A state: running, stopped or unregistered."),
				texts("label", "A condition on labels: key=value, key!=value, key or !key. A value may be a pattern with * "+
					"and ?. All conditions must hold."),
				flag("managed", "Whether the agent supervises the process."),
				flag("hosted", "The earlier word for managed."),
			}, pageParams(), businessParams()),
			Answers: answers(http.StatusOK, client.ProcessPage{}, "One page of the processes.")},

		{Method: http.MethodGet, Path: "/api/v1/definitions", Access: AccessCaller, serve: (*api).getDefinitions,
			Summary: "List recorded definitions of processes, in the order of the processes. Values of env are hidden from " +
				"callers that may not change the definition.",
			Parameters: append([]Parameter{
				texts("namespace", "A namespace, or a pattern with * and ?."),
				texts("name", "A name, or a pattern with * and ?."),
				texts("host", "A host: cloud:ip, an IP address, a host name or an agent id."),
				numbers("cloud", "The number of a cloud area."),
				flag("effective", "Whether to answer with the defaults filled in, too."),
			}, pageParams()...),
			Answers: answers(http.StatusOK, client.DefinitionPage{}, "One page of the definitions.")},

		{Method: http.MethodPost, Path: "/api/v1/definitions/parse", Access: AccessCaller, serve: (*api).postParse,
			Summary: "Read a definition that is YAML or JSON text, or a document, and answer both forms with all faults. Nothing " +
				"is registered.",
			Body:    jsonBody(client.DefinitionText{}),
			Answers: answers(http.StatusOK, client.ParsedDefinition{}, "Both forms. Faults of a text have their lines.")},

		{Method: http.MethodGet, Path: "/api/v1/hosts", Access: AccessCaller, serve: (*api).getHosts,
			Summary:    "List every host that the caller may see, ordered by cloud and address.",
			Parameters: pageParams(), Answers: answers(http.StatusOK, client.HostPage{}, "One page of the hosts.")},

		{Method: http.MethodGet, Path: "/api/v1/discovery/prometheus", Access: AccessCaller, serve: (*api).getMetricsTargets,
			Summary: "List the agents that serve metrics, of the hosts that the caller may see, for http_sd_configs of Prometheus.",
			Answers: answers(http.StatusOK, []client.MetricsTarget{}, "The addresses, with labels for relabelling.")},

		{Method: http.MethodPost, Path: "/api/v1/hosts/restart", Access: AccessCaller, serve: (*api).postHostRestart,
			Summary: "Restart the agents of hosts, as a task. Their processes keep running. It needs the role admin for all " +
				"namespaces, or a grant for them that lists restart-agent, and the policy of each host must allow it.",
			Parameters: idempotency(), Body: jsonBody(client.HostRestartRequest{}),
			Answers: answers(http.StatusAccepted, client.Accepted{},
				"The task is recorded. Location is the path of the task."), Errors: taskErrors()},

		{Method: http.MethodDelete, Path: "/api/v1/hosts/{agent}", Access: AccessCaller, serve: (*api).deleteHost,
			Summary: "Forget a host that will never come back, with its processes and their definitions; operations that wait " +
				"for it get their verdicts. This needs the role admin on all of its addresses.",
			Parameters: []Parameter{inPath("agent", "The id of its agent.")},
			Answers:    answers(http.StatusOK, client.ForgottenHost{}, "The host is forgotten."),
			Errors:     []gozzard.ErrorKind{gozzard.ErrConflict, gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: "/api/v1/events", Access: AccessCaller, serve: (*api).getEvents,
			Summary: "List the newest events that match, oldest first.",
			Parameters: append(eventParams(),
				number("limit", "The largest number of events, from 1 to 1000; 100 when missing.")),
			Answers: answers(http.StatusOK, client.EventPage{}, "The events.")},

		{Method: http.MethodGet, Path: "/api/v1/events/stream", Access: AccessCaller, serve: (*api).streamEvents,
			Summary: "Stream events as they happen, as server-sent events.",
			Parameters: append(eventParams(),
				inHeader("Last-Event-ID", "The id of the last event that the client has; the stream continues after it.")),
			Answers: []Answer{{Status: http.StatusOK, Kinds: []string{streamType},
				Meaning: `Each event is an Event in JSON. An event named "lost" says that events may be missing.`}}},

		{Method: http.MethodGet, Path: "/api/v1/logs", Access: AccessCaller, serve: (*api).getLog,
			Summary: "Read the output of one process on one host.",
			Parameters: []Parameter{
				requiredText("namespace", "The namespace of the process."),
				requiredText("name", "The name of the process."),
				requiredText("host", "The host: cloud:ip, an IP address, a host name or an agent id."),
				number("lines", "The largest number of lines, from 1 to 10000; 100 when missing."),
				number("offset", "Where to start, in bytes since the log began; when missing, the last lines are read."),
			},
			Answers: answers(http.StatusOK, client.LogChunk{}, "A part of the output."),
			Errors:  []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: "/api/v1/history", Access: AccessCaller, serve: (*api).getHistory,
			Summary: "Read what the agent of a host measured of one process: a day in steps of 10 seconds, 30 days in steps of " +
				"5 minutes.",
			Parameters: []Parameter{
				requiredText("namespace", "The namespace of the process."),
				requiredText("name", "The name of the process."),
				text("agent", "The id of the agent of the host; either this or host is required."),
				text("host", "The host: cloud:ip, an IP address, a host name or an agent id."),
				number("from", "The beginning, in Unix seconds; an hour before the end when missing."),
				number("to", "The end, in Unix seconds; now when missing."),
				number("points", "The largest number of points, from 1 to 1000; 300 when missing."),
			},
			Answers: answers(http.StatusOK, client.History{}, "The measurements."),
			Errors:  []gozzard.ErrorKind{gozzard.ErrNotFound}},
	}
}

func topologyRoutes() []Route {
	biz := inPath("biz", "The id of the business.")
	documents := []string{"application/yaml", "application/json"}
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/topology", Access: AccessCaller, serve: (*api).getBusinesses,
			Summary: "List every business that the caller may see, ordered by id.",
			Answers: answers(http.StatusOK, client.BusinessList{}, "The businesses.")},

		{Method: http.MethodGet, Path: "/api/v1/topology/{biz}", Access: AccessCaller, serve: (*api).getTopology,
			Summary:    "Read the topology document of a business. ETag is its version.",
			Parameters: []Parameter{biz},
			Answers: []Answer{{Status: http.StatusOK, Value: json.RawMessage{}, Kinds: documents,
				Meaning: "The topology document, in JSON unless the header Accept asks for YAML."}},
			Errors: []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodPut, Path: "/api/v1/topology/{biz}", Access: AccessCaller, serve: (*api).putTopology,
			Summary: "Replace a business by a topology document.",
			Parameters: []Parameter{biz,
				flag("dry_run", "Only answer what would change."),
				flag("prune", "Also remove supervised processes: they are unregistered and keep running."),
				flag("take_over", "Also if the business comes from CMDB."),
				number("version", "Only if this is the recorded version; 0 means that the business must be new."),
			},
			Body:    Body{Value: json.RawMessage{}, Kinds: documents},
			Answers: answers(http.StatusOK, client.Applied{}, "What the document changed, or would change."),
			Errors:  taskErrors()},

		{Method: http.MethodDelete, Path: "/api/v1/topology/{biz}", Access: AccessCaller, serve: (*api).deleteTopology,
			Summary: "Remove a business. Its processes must not be supervised, unless prune is set.",
			Parameters: []Parameter{biz,
				flag("dry_run", "Only answer what would be removed."),
				flag("prune", "Also if processes of it are supervised: they are unregistered and keep running."),
				number("version", "Only if this is the recorded version."),
			},
			Answers: answers(http.StatusOK, client.Applied{}, "What was removed, or would be."),
			Errors:  taskErrors()},

		{Method: http.MethodGet, Path: "/api/v1/topology/{biz}/tree", Access: AccessCaller, serve: (*api).getTree,
			Summary: "Count the processes of a business by set and module.",
			Parameters: []Parameter{biz,
				text("env", "Only this environment: 1 or test, 2 or experience, 3 or formal.")},
			Answers: answers(http.StatusOK, client.Tree{}, "The counts."),
			Errors:  []gozzard.ErrorKind{gozzard.ErrNotFound}},
	}
}
