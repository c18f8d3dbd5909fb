// Package blueking is what the BlueKing doors share: credentials, the envelope of answers, the table of routes, and
// GSE's numbers and sentences for verdicts.
package blueking
