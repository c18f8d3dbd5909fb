// Package ratelimit protects all HTTP APIs: it limits how often, how slowly and how much a client may ask, so that one
// client cannot slow down the others.
package ratelimit
