// Package otlp sends spans and metrics to a collector by the OpenTelemetry protocol: protobuf over HTTP, from bounded queues, so
// that a collector that is slow, down or hostile delays nothing else.
package otlp
