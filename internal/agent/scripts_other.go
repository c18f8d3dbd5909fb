//go:build !linux

package agent

const scriptsRun = false
