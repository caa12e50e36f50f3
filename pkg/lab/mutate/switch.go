package mutate

// switchImports is what switchSource imports.
var switchImports = []string{"cmp", "os", "path/filepath", "strconv", "strings", "syscall"}

// switchSource is added to each package that has mutants. The directory of the test binary
// says in "active" which mutant is on, and a file "reached", if there is one, has a byte for
// each mutant that is set when a test comes past it. The file is mapped, so that it is right
// however the process ends.
const switchSource = `package mutate

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

var mutantActive, mutantReached = mutantControl()

func mutantControl() (int, []byte) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil
	}
	b, _ := os.ReadFile(filepath.Join(filepath.Dir(self), "active"))
	active, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	f, err := os.OpenFile(filepath.Join(filepath.Dir(self), "reached"), os.O_RDWR, 0)
	if err != nil {
		return active, nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return active, nil
	}
	reached, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return active, nil
	}
	return active, reached
}

func mutantOn(id int) bool {
	if mutantReached != nil {
		mutantReached[id] = 1
	}
	return id == mutantActive
}

func mutantLess[T cmp.Ordered](id int, a, b T) bool {
	if mutantOn(id) {
		return a <= b
	}
	return a < b
}

func mutantLessEqual[T cmp.Ordered](id int, a, b T) bool {
	if mutantOn(id) {
		return a < b
	}
	return a <= b
}

func mutantMore[T cmp.Ordered](id int, a, b T) bool {
	if mutantOn(id) {
		return a >= b
	}
	return a > b
}

func mutantMoreEqual[T cmp.Ordered](id int, a, b T) bool {
	if mutantOn(id) {
		return a > b
	}
	return a >= b
}

func mutantOffByOne[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](id int, n T) T {
	if mutantOn(id) {
		return n + 1
	}
	return n
}

func mutantMin[T cmp.Ordered](id int, first T, rest ...T) T {
	on := mutantOn(id)
	for _, v := range rest {
		if on {
			first = max(first, v)
		} else {
			first = min(first, v)
		}
	}
	return first
}

func mutantMax[T cmp.Ordered](id int, first T, rest ...T) T {
	on := mutantOn(id)
	for _, v := range rest {
		if on {
			first = min(first, v)
		} else {
			first = max(first, v)
		}
	}
	return first
}
`
