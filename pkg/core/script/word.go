package script

import "strings"

// splitWords cuts a directive into words as sbatch does: blanks separate, single and
// double quotes group, a backslash takes the next byte as it is, in quotes too, and a # begins a
// comment, also in a word ("--time=5#minutes"). In quotes it does not, though sbatch reads it so. col is the column of line[0], cols those
// of the words. badCol names
// the quote that is never closed, 0 when all are.
func splitWords(line string, col int) (words []string, cols []int, badCol int) {
	var b strings.Builder
	start, quoteAt := -1, 0 // start: index of the word under way, -1: between words
	var quote byte
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			} else if c == '\\' {
				if i++; i < len(line) {
					b.WriteByte(line[i])
				}
			} else {
				b.WriteByte(c)
			}
		case c == ' ' || c == '\t':
			if start >= 0 {
				words, cols = append(words, b.String()), append(cols, col+start)
				b.Reset()
				start = -1
			}
		case c == '#':
			if start >= 0 {
				words, cols = append(words, b.String()), append(cols, col+start)
			}
			return words, cols, 0
		default:
			if start < 0 {
				start = i
			}
			switch {
			case c == '"' || c == '\'':
				quote, quoteAt = c, col+i
			case c == '\\':
				if i++; i < len(line) {
					b.WriteByte(line[i])
				}
			default:
				b.WriteByte(c)
			}
		}
	}
	if quote != 0 {
		return words, cols, quoteAt
	}
	if start >= 0 {
		words, cols = append(words, b.String()), append(cols, col+start)
	}
	return words, cols, 0
}
