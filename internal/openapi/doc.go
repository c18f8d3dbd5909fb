// Package openapi has the parts of an OpenAPI 3.1 document that Gozzard uses, and makes JSON schemas of Go types.
package openapi
