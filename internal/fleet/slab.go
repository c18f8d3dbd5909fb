package fleet

const (
	slabBits = 10
	slabSize = 1 << slabBits
)

// slab is a growing array of T with stable indexes. It grows in pieces, so that it never copies millions of rows while
// a lock is held. It reuses freed places, so that replaced rows do not make it grow.
type slab[T any] struct {
	pieces []*[slabSize]T
	used   uint32 // places that were ever allocated
	free   []uint32
}

func (s *slab[T]) at(i uint32) *T { return &s.pieces[i>>slabBits][i&(slabSize-1)] }

// alloc returns the index of a place with a zero value.
func (s *slab[T]) alloc() uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	i := s.used
	if i&(slabSize-1) == 0 {
		s.pieces = append(s.pieces, new([slabSize]T))
	}
	s.used++
	return i
}

// release frees a place.
func (s *slab[T]) release(i uint32) {
	var zero T
	*s.at(i) = zero
	s.free = append(s.free, i)
}
