// Package blueking is what the BlueKing doors share: credentials, the envelope of answers, strict decoding of requests and the table of routes.
package blueking
