// Package ledger judges operations under faults: none may be lost, done twice or reported wrongly.
package ledger
