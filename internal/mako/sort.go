package mako

import "slices"

// shortSort is the number of items up to which the order of comparisons is Python's, which shows when two of them cannot be compared.
const shortSort = 63

// sortAs sorts as Python does: equal items stay in their order.
func sortAs(order []int, compare func(i, j int) (int, error)) error {
	if len(order) <= shortSort {
		return insert(order, func(i, j int) (bool, error) {
			n, err := compare(i, j)
			return n < 0, err
		})
	}

	var fault error
	slices.SortStableFunc(order, func(i, j int) int {
		if fault != nil {
			return 0
		}
		n, err := compare(i, j)
		fault = err
		return n
	})
	return fault
}

// insert sorts few items: it takes those at the start that are in order, or in the opposite order, and finds the place of each of the
// others by halves.
func insert(order []int, less func(i, j int) (bool, error)) error {
	sorted, err := startRun(order, less)
	if err != nil {
		return err
	}

	for at := sorted; at < len(order); at++ {
		item, from, to := order[at], 0, at
		for from < to {
			middle := from + (to-from)/2
			below, err := less(item, order[middle])
			if err != nil {
				return err
			}
			if below {
				to = middle
			} else {
				from = middle + 1
			}
		}
		copy(order[from+1:at+1], order[from:at])
		order[from] = item
	}
	return nil
}

// startRun counts the items at the start that are in order. If they are in the opposite order, it turns them around.
func startRun(order []int, less func(i, j int) (bool, error)) (n int, err error) {
	if len(order) < 2 {
		return len(order), nil
	}
	falling, err := less(order[1], order[0])
	if err != nil {
		return 0, err
	}

	for n = 2; n < len(order); n++ {
		below, err := less(order[n], order[n-1])
		if err != nil {
			return 0, err
		}
		if below != falling {
			break
		}
	}
	if falling {
		slices.Reverse(order[:n])
	}
	return n, nil
}
