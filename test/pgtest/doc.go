// Package pgtest runs PostgreSQL servers for tests: each in a folder of its own, on a Unix socket only.
package pgtest
