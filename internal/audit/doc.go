// Package audit turns refusals and repeated queries into rows of the audit, so that they leave a trace and cannot fill
// the record.
package audit
