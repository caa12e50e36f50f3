// Package checksum finds out that a JSON object on a disk is not what was written: one that was
// cut, of which a bit flipped, or that stands in the place of another.
//
// The checksum is the object's first field, so that a program which knows nothing of it reads
// the rest as before. It covers the length and the bytes of the object, and a word for what it
// is: a rank's row is not taken for another rank's. An object without one is of a version before,
// and is taken.
//
// It is CRC-32C: it finds damage, not a forger.
//
// Begin with Add and Check. It must not know what an object means.
package checksum

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// head begins an object that has one; eight hexadecimal digits and a quote follow.
const (
	head   = `{"sum":"`
	digits = 8
)

var table = crc32.MakeTable(crc32.Castagnoli)

// Error: the object is not what was written under this word.
type Error struct {
	Written, Found uint32
}

func (e *Error) Error() string {
	return fmt.Sprintf("damaged: its checksum is %08x, its content has %08x", e.Written, e.Found)
}

// Add gives the object with its checksum. It must begin with "{" and a field.
func Add(object []byte, what string) string {
	var out strings.Builder
	out.Grow(len(object) + len(head) + digits + 1)
	fmt.Fprintf(&out, `%s%08x",`, head, sum(object[1:], what))
	out.Write(object[1:])
	return out.String()
}

// Check gives an [*Error] for an object whose checksum is wrong. What else may be wrong with it
// shows when it is parsed. Ends of lines behind the object don't count.
func Check(b []byte, what string) error {
	written, fields, has := split(b)
	if !has {
		return nil
	}
	if found := sum(fields, what); found != written {
		return &Error{Written: written, Found: found}
	}
	return nil
}

// Of is the checksum of what has no text but its words.
func Of(what string) uint32 { return sum(nil, what) }

// split gives the checksum and what follows its field.
func split(b []byte) (written uint32, fields []byte, has bool) {
	rest, has := bytes.CutPrefix(bytes.TrimRight(b, "\n"), []byte(head))
	if !has || len(rest) < digits+2 || rest[digits] != '"' || rest[digits+1] != ',' {
		return 0, nil, false
	}
	n, err := strconv.ParseUint(string(rest[:digits]), 16, 32)
	if err != nil { // no digits: any content is another one
		return 0, nil, true
	}
	return uint32(n), rest[digits+2:], true
}

func sum(fields []byte, what string) uint32 {
	s := crc32.Checksum([]byte(what), table)
	s = crc32.Update(s, table, strconv.AppendInt([]byte{0}, int64(len(fields)), 10))
	s = crc32.Update(s, table, []byte{0})
	return crc32.Update(s, table, fields)
}
