// Package tenants is about tenants that share a fleet: its tests call every door as one tenant and look for data of
// another.
package tenants
