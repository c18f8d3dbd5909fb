// Package notify tests alerts with the built program, real agents and real receivers.
package notify
