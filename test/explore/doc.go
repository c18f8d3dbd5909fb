// Package explore visits every state that a model can reach, and looks for one in which a promise is broken.
package explore
