package script

import "strings"

// patternLetters are what a file pattern may hold behind %, with a width in between.
const patternLetters = "jxAauNntr%"

// CheckPattern refuses a letter behind % that means nothing here.
func CheckPattern(s string) error {
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			continue
		}
		i++
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if i == len(s) {
			return bad("the % at the end stands for nothing", "write %% for a percent sign")
		}
		if strings.IndexByte(patternLetters, s[i]) < 0 {
			hint := "there are %j job, %x name, %A array, %a index, %u user, %N node, %n node number, %t rank, %r restart, %%"
			switch s[i] {
			case 'J', 's', 'b':
				hint = "that one is srun's; " + hint
			}
			return bad("%"+string(rune(s[i]))+" stands for nothing", hint)
		}
	}
	return nil
}

// FixedDir is the longest leading directory of a path pattern that is the same for every
// job, rank and attempt.
func FixedDir(pattern string) string {
	if i := strings.IndexByte(pattern, '%'); i >= 0 {
		pattern = pattern[:i]
	}
	i := strings.LastIndexByte(pattern, '/')
	switch {
	case i < 0:
		return ""
	case i == 0:
		return "/"
	}
	return pattern[:i]
}
