// Package console serves the page on which people see and drive the fleet.
package console
