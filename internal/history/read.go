package history

import (
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
)

// How far the two rings reach, in seconds.
const (
	fineReach   = ringBlocks * blockSteps * fineStep
	coarseReach = ringBlocks * blockSteps * coarseStep
)

// Read reads the history of a process. A time without measurements has empty points.
func (s *Store) Read(q gozzard.HistoryQuery) (gozzard.History, error) {
	// Choose the ring and the step. A chart of exactly a day is fine: it begins a moment before the oldest block.
	now := s.now().Unix()
	r, to := fine, min(q.To, now+1)
	from := max(q.From, now-coarseReach)
	if from < now-fineReach-coarseStep {
		r = coarse
	}
	if to <= from {
		return gozzard.History{}, errors.New("the end of the time is not after its beginning, or is more than 30 days ago")
	}
	from -= from % r.step
	points := int64(min(max(q.Points, 1), gozzard.MaxHistoryPoints))
	step := r.step * max(1, (to-from+points*r.step-1)/(points*r.step))
	n := func(begin int64) int64 { return (to - begin + step - 1) / step }
	begin := from - from%step // a chart that is drawn again has the same columns
	if n(begin) > points {
		begin = from
	}
	from = begin

	// Sum up what the file has.
	sums := make([]total, n(from))
	for i := range sums {
		sums[i] = newTotal()
	}
	err := s.each(q.Key, r, from/r.step, (to-1)/r.step, func(slot int64, p gozzard.HistoryPoint) {
		if i := (slot*r.step - from) / step; i >= 0 && i < int64(len(sums)) {
			sums[i].add(p)
		}
	})
	if err != nil {
		return gozzard.History{}, err
	}

	h := gozzard.History{ID: q.ID, From: from, Step: step, Points: make([]gozzard.HistoryPoint, len(sums))}
	for i := range sums {
		h.Points[i] = sums[i].point()
	}
	return h, nil
}

// each calls fn with the steps of a ring, of the file and of the memory. A step comes once.
func (s *Store) each(key gozzard.Key, r ring, first, last int64, fn func(int64, gozzard.HistoryPoint)) error {
	s.disk.Lock()
	defer s.disk.Unlock()

	// Take what is in memory.
	id := idOf(key)
	recent, err := s.spooled(id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.gone[id.name()] {
		s.mu.Unlock()
		return nil
	}
	known := s.series[key] != nil || s.names[id.name()] || len(s.names) < s.most
	if x := s.series[key]; x != nil {
		recent = append(recent, x.waiting...)
		if x.changed {
			recent = append(recent, x.current)
		}
	}
	s.mu.Unlock()
	if !known {
		return fmt.Errorf("there is no history: the limit of %d processes with a history on this host is reached", s.most)
	}

	// Read the file.
	f, err := openRead(s.dir, id)
	if err != nil {
		return err
	}
	blocks, err := f.blocks(r, first/blockSteps, last/blockSteps, recent)
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return err
	}

	for number, b := range blocks {
		for i, p := range b.points {
			if slot := number*blockSteps + int64(i); slot >= first && slot <= last && !p.IsEmpty() {
				fn(slot, p)
			}
		}
	}
	return nil
}

// blocks returns the blocks of a ring by their numbers. recent are fine blocks that are not in the file. f may be nil.
func (f *file) blocks(r ring, first, last int64, recent []block) (map[int64]block, error) {
	// Read the file.
	blocks := map[int64]block{}
	if f != nil {
		if err := f.eachBlock(r, first, last, func(b *block) { blocks[b.number] = *b }); err != nil {
			return nil, err
		}
	}

	// Add what is not in it yet. The newest coarse steps are computed again from fine ones.
	if r == fine {
		for _, b := range recent {
			b.merge(orNew(blocks, b.number))
			blocks[b.number] = b
		}
		return blocks, nil
	}

	end := (last + 1) * blockSteps * coarseStep / (fineStep * blockSteps)
	near, err := f.blocks(fine, end-ringBlocks/2, end, recent)
	if err != nil {
		return nil, err
	}
	sums := map[int64]*total{}
	for number, b := range near {
		step := coarseOf(number)
		if sums[step] == nil {
			sums[step] = new(newTotal())
		}
		for _, p := range b.points {
			sums[step].add(p)
		}
	}
	for step, sum := range sums {
		b := orNew(blocks, step/blockSteps)
		if p := sum.point(); !p.IsEmpty() {
			b.points[step%blockSteps] = p
		}
		blocks[b.number] = b
	}
	return blocks, nil
}

func orNew(blocks map[int64]block, number int64) block {
	if b, ok := blocks[number]; ok {
		return b
	}
	return newBlock(number)
}

// spooled returns the blocks of a process that are in the spool.
func (s *Store) spooled(id fileID) ([]block, error) {
	list, err := s.spool.batches(&id)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0].blocks, nil
}
