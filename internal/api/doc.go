// Package api is Gozzard's own HTTP API: operations, tasks, processes, hosts, accounts and releases, with the routes
// for health, metrics and logins. Its requests and answers are the types of package client. Routes is the table of
// all its routes; the handler and the OpenAPI document are made from it.
package api
