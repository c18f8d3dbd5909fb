package topology

import "time"

// Spend makes a Definer believe that its templates took some time.
func (d *Definer) Spend(t time.Duration) { d.spent += t }
