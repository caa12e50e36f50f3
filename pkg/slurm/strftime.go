package slurm

import (
	"strconv"
	"strings"
	"time"
)

// strftimeLetters is the conversions of strftime(3) in the C locale, by Go's layouts.
var strftimeLetters = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06",
	'e': "_2", 'F': "2006-01-02", 'H': "15", 'I': "03", 'j': "002", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04",
	'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
}

// strftime writes a time by a format of strftime(3). A conversion that it does not know stays
// as it was written.
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; c {
		case '%':
			b.WriteByte('%')
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		default:
			layout, ok := strftimeLetters[c]
			if !ok {
				b.WriteString("%" + string(c))
				continue
			}
			b.WriteString(t.Format(layout))
		}
	}
	return b.String()
}
