// Package audit turns refusals into rows of the audit, so that failed logins and requests without a right leave a trace
// and cannot fill the record.
package audit
