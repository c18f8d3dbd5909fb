// Package api is Gozzard's own HTTP API: operations, tasks, processes and hosts in the words of the domain, with
// health and metrics beside them.
package api
