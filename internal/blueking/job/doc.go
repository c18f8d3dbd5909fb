// Package job is BlueKing Job's process API: its paths, words and numbers, in front of the control plane.
package job
