// Package blueking is what the BlueKing doors share: credentials, the envelope of answers and the table of routes.
package blueking
