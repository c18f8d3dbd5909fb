package api

import (
	"encoding/json"
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/specjson"
)

func serverRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/audit", Access: AccessAdmin, serve: (*api).getAudit,
			Summary: "List rows of the audit, in the order of their chain or the newest first.",
			Parameters: []Parameter{
				number("after", "Only rows after this number; 0 when missing."),
				flag("newest", "The newest rows first."),
				number("before", "With newest: only rows before this number; from the newest on when missing."),
				number("limit", "The largest number of rows, from 1 to 1000; 100 when missing."),
				text("host", "Only rows about this host: an agent id, a host name, an address, or cloud:address."),
				text("account", "Only operations with definitions of this OS account. root also finds definitions without an account."),
				text("app", "Only rows of this app, and about wrong credentials of it."),
				text("user", "Only rows of this user, and about failed logins as this user."),
				text("action", "Only rows whose act has this word, such as stop, login:failed or enrol."),
				text("since", "Only rows of this time or later, as in RFC 3339."),
				text("until", "Only rows before this time, as in RFC 3339."),
			},
			Answers: answers(http.StatusOK, client.AuditPage{}, "The rows. A page may have fewer rows than the limit, "+
				"or none, although there are more: next and Link say where to go on."),
			Errors: []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: "/api/v1/audit/{row}", Access: AccessAdmin, serve: (*api).getAuditRow,
			Summary:    "Read a row of the audit with its hosts, actions and definitions.",
			Parameters: append([]Parameter{inPath("row", "The number of the row.")}, pageParams()...),
			Answers: answers(http.StatusOK, client.AuditDetail{}, "The row. start and limit choose a page of the hosts and "+
				"of the items."),
			Errors: []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: "/api/v1/audit/definitions/{digest}", Access: AccessAdmin,
			serve:      (*api).getAuditDefinition,
			Summary:    "Read a definition that a row of the audit names by its digest.",
			Parameters: []Parameter{inPath("digest", "SHA-256 of the definition, in hexadecimal.")},
			Answers:    answers(http.StatusOK, json.RawMessage{}, "The definition."),
			Errors:     []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: "/api/v1/openapi.json", Access: AccessOpen, serve: (*api).getOpenAPI,
			Summary: "Read this description of the API, in OpenAPI 3.1.",
			Answers: answers(http.StatusOK, json.RawMessage{}, "The OpenAPI document.")},

		{Method: http.MethodGet, Path: specjson.SchemaPath, Access: AccessOpen, serve: (*api).getDefinitionSchema,
			Summary: "Read the JSON Schema of the documents that register a process.",
			Answers: answers(http.StatusOK, json.RawMessage{}, "The JSON Schema. Editors complete and check documents with it.")},

		{Method: http.MethodGet, Path: "/healthz", Access: AccessOpen, serve: (*api).getHealth,
			Summary: "Check that the server answers requests.",
			Answers: answers(http.StatusOK, client.Health{}, "The server answers requests.")},

		{Method: http.MethodGet, Path: "/readyz", Access: AccessOpen, serve: (*api).getReady,
			Summary: "Check that the server accepts operations.",
			Answers: []Answer{
				{Status: http.StatusOK, Value: client.Health{}, Meaning: "The server accepts operations."},
				{Status: http.StatusServiceUnavailable, Value: client.Health{},
					Meaning: "The server does not accept operations now."},
			}},

		{Method: http.MethodGet, Path: "/metrics", Access: AccessLocal, serve: (*api).getMetrics,
			Summary: "Read the metrics of the server, in the text format of Prometheus.",
			Answers: []Answer{{Status: http.StatusOK, Kinds: []string{"text/plain"}, Meaning: "The metrics."}},
			Errors:  []gozzard.ErrorKind{gozzard.ErrNotFound}},
	}
}
