// Package cron parses crontab rules and computes when they are due.
package cron
