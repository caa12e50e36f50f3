package pystack

import "encoding/binary"

// line is the one of its source that a frame is at, 0 where it can't be told.
func (r *reader) line(frame uint64, c *code) int {
	offset := int(int32(r.pointer(frame+r.l.instruction))) * int(r.l.units)
	if r.l.instructions != 0 {
		at, first := r.pointer(frame+r.l.instruction), c.at+r.l.instructions
		if at < first || at-first > 1<<24 {
			return 0
		}
		offset = int(at - first)
	}
	if offset < 0 {
		return 0
	}
	if offset != c.offset {
		c.offset, c.line = offset, lineOf(r.l.lineForm, r.bytes(r.pointer(c.at+r.l.lines)), int(int32(r.pointer(c.at+r.l.firstLine))), offset)
	}
	return c.line
}

// bytes reads an object of bytes, nil where it is too long.
func (r *reader) bytes(at uint64) []byte {
	if at == 0 || !r.read(r.word[:], at+bytesLength) {
		return nil
	}
	n := binary.LittleEndian.Uint64(r.word[:])
	if n > mostLines {
		return nil
	}
	if n == 0 {
		return []byte{}
	}
	b := make([]byte, n)
	if !r.read(b, at+bytesData) {
		return nil
	}
	return b
}

// lineOf looks up the line of an instruction, 0 where the table has none for it.
func lineOf(form lineForm, table []byte, first, offset int) int {
	switch {
	case table == nil:
		return 0
	case form == linesBySteps:
		return lineBySteps(table, first, offset)
	case form == linesByRanges:
		return lineByRanges(table, first, offset)
	}
	return lineByEntries(table, first, offset)
}

func lineBySteps(table []byte, line, offset int) int {
	at := 0 // a function of one line has an empty table
	for i := 0; i+1 < len(table); i += 2 {
		if at += int(table[i]); at > offset {
			break
		}
		line += int(int8(table[i+1]))
	}
	return max(line, 0)
}

func lineByRanges(table []byte, line, offset int) int {
	const none = -128
	end := 0
	for i := 0; i+1 < len(table); i += 2 {
		end += int(table[i])
		step := int(int8(table[i+1]))
		if step != none {
			line += step
		}
		if offset < end {
			if step == none {
				return 0
			}
			return max(line, 0)
		}
	}
	return 0
}

// lineByEntries: the first byte of an entry alone has its highest bit set; it says the form of the entry and how many
// instructions of two bytes it is about.
func lineByEntries(table []byte, line, offset int) int {
	const (
		oneLine, noColumns, long, none = 10, 13, 14, 15 // forms; 10 to 12 add so much less 10 to the line
	)
	end := 0
	for i := 0; i < len(table); {
		form := int(table[i] >> 3 & 15)
		end += 2 * (int(table[i]&7) + 1)
		i++
		switch {
		case form == noColumns || form == long:
			step, shift := 0, 0
			for k := i; k < len(table) && shift < 30; k, shift = k+1, shift+6 {
				step |= int(table[k]&63) << shift
				if table[k]&64 == 0 {
					break
				}
			}
			if step&1 != 0 {
				line -= step >> 1
			} else {
				line += step >> 1
			}
		case form >= oneLine && form < noColumns:
			line += form - oneLine
		}
		for i < len(table) && table[i]&128 == 0 {
			i++
		}
		if offset < end {
			if form == none {
				return 0
			}
			return max(line, 0)
		}
	}
	return 0
}
