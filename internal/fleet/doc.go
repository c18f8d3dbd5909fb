// Package fleet holds the hosts and processes of the fleet in memory, with the indexes that queries need.
package fleet
