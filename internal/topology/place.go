package topology

// Place is where a process is in its business, by names. The zero value means that it is in none.
type Place struct {
	Biz               int
	Name, Set, Module string
}
