package api

import (
	"encoding/json"
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

func serverRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/api/v1/audit", Access: AccessAdmin, serve: (*api).getAudit,
			Summary: "List rows of the audit, in the order of their chain.",
			Parameters: []Parameter{
				number("after", "Only rows after this number; 0 when missing."),
				number("limit", "The largest number of rows, from 1 to 1000; 100 when missing."),
			},
			Answers: answers(http.StatusOK, client.AuditPage{}, "The rows. Link is the path of the next page."),
			Errors:  []gozzard.ErrorKind{gozzard.ErrNotFound}},

		{Method: http.MethodGet, Path: "/api/v1/openapi.json", Access: AccessOpen, serve: (*api).getOpenAPI,
			Summary: "Read this description of the API, in OpenAPI 3.1.",
			Answers: answers(http.StatusOK, json.RawMessage{}, "The OpenAPI document.")},

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
