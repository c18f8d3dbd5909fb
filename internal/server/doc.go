// Package server is the server as a running program: it puts the parts together (record, trust, fabric, control plane,
// doors), starts and stops them in order, and serves all doors by one table of routes.
package server
