// Package auditexport sends the rows of the audit to other systems as they are written: in order, each at least once,
// and without delaying anything else.
package auditexport
