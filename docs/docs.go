// Package docs holds the pages of the documentation, which the program serves below /docs.
package docs

import "embed"

// Files are the pages in English, below zh those in Chinese, and what they show.
//
//go:embed *.md zh/*.md adr/*.md pictures/*.png definition.schema.json
var Files embed.FS
