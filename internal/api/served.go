package api

// Served is one route of the API, for who has to go over all of them.
type Served struct {
	Method string
	Path   string // {name} stands for one part
	Open   bool   // anybody is let in, at least from this machine
}

// Routes lists everything that the API serves.
func Routes() []Served {
	var list []Served
	for _, rt := range routes() {
		list = append(list, Served{Method: rt.method, Path: rt.path,
			Open: rt.access == accessOpen || rt.access == accessLoopbackOrKnown})
	}
	return list
}
