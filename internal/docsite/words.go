package docsite

const (
	english = "en"
	chinese = "zh"
)

// words are the words around the pages, by language. English has the keys.
var words = map[string]map[string]string{
	english: {},
	chinese: {
		"Documentation":                     "文档",
		"Search":                            "搜索",
		"Search the pages":                  "搜索文档",
		"On this page":                      "本页内容",
		"Pages":                             "页面",
		"Console":                           "控制台",
		"There is no such page":             "没有这个页面",
		"%d places":                         "找到 %d 处",
		"%d places, the first %d are shown": "找到 %d 处，显示前 %d 处",
		"Nothing was found. Try fewer or other words": "没有找到。请减少关键词，或换一个词",
	},
}

// say gives a word in the language of a book.
func (b *book) say(text string) string {
	if own, ok := words[b.language][text]; ok {
		return own
	}
	return text
}
