package sqlstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gangd/pkg/core/checksum"
)

// Databases have no checksum of what is in their files (SQLite only in its log, PostgreSQL only where initdb was told so): a bit that flips
// within a row gives
// another row. So each row's text has one, which covers what row it is. Rows of a version before have
// none, and are taken.

// rowName says what row a text is of.
func rowName(table string, keys ...int64) string {
	b := make([]byte, 0, 48)
	b = append(b, table...)
	for _, k := range keys {
		b = strconv.AppendInt(append(b, ' '), k, 10)
	}
	return string(b)
}

// jobName is rowName of a job, which has a spec.
func jobName(id int64, spec string) string { return rowName("job", id) + " " + spec }

// sealed is the text of a row with its checksum.
func sealed(data []byte, name string) string { return checksum.Add(data, name) }

// intact says what is wrong with the text of a row; nil: nothing that a checksum finds.
func intact(data []byte, name string) error {
	if err := checksum.Check(data, name); err != nil {
		return fmt.Errorf("row %s: %w", name, err)
	}
	return nil
}

// keptClaims makes an object of claims, which are a list.
type keptClaims struct {
	Claims json.RawMessage `json:"claims"`
}

func sealedClaims(claims []byte) string {
	return sealed(slices.Concat([]byte(`{"claims":`), claims, []byte("}")), "claims")
}

// openClaims gives what was sealed; the list of a version before is as it is.
func openClaims(text []byte) ([]byte, error) {
	if bytes.HasPrefix(text, []byte("[")) {
		return text, nil
	}
	if err := intact(text, "claims"); err != nil {
		return nil, err
	}
	var kept keptClaims
	if json.Unmarshal(text, &kept) != nil || kept.Claims == nil {
		return nil, errors.New("row claims: it is no list")
	}
	return kept.Claims, nil
}

// readable says why the text of a row can't be what gangd wrote there.
func readable(data []byte, name string, check func([]byte) error) error {
	if err := checksum.Check(data, name); err != nil {
		return err
	}
	return check(data)
}
