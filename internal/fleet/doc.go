// Package fleet is the fleet in memory: hosts and processes with the indexes that queries need.
package fleet
