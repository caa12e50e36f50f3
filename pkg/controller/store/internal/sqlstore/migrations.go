package sqlstore

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Migrations gives the texts in order. Their numbers are 1, 2, 3 ... without a gap; a
// migration that was released is never edited.
func Migrations(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var texts []string
	for i, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("migration %s stands at place %d", name, i+1)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}
