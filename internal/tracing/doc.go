// Package tracing follows operations from their request to their verdicts and makes spans of them.
package tracing
