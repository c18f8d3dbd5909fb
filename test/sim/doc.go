// Package sim is a simulated fleet: the real agent over machines that exist in memory only.
package sim
