// Package specjson reads definitions of processes, labels and names from JSON requests.
package specjson
