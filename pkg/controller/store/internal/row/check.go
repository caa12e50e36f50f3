package row

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// What no row holds in earnest: a number beyond what JSON carries whole, a duration of more than ten
// years, a time before 1970 or after 9999. Arithmetic on them overflows.
const (
	mostNumber   = 1 << 53
	mostDuration = 87600 * time.Hour
)

var (
	oldest = time.Unix(0, 0)
	newest = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// CheckJob says what is impossible in the row of a job, the checks below in rows of other kinds. A row
// that passes can be decoded.
func CheckJob(data []byte) error {
	r := &job{Job: &gang.Job{Wishes: new(gang.Wishes), Past: new(gang.Past)}}
	err := checkInto(data, r)
	switch {
	case err != nil:
		return err
	case r.Size < 1 || r.Size > api.MaxGangSize:
		return fmt.Errorf("size %d: want 1 to %d", r.Size, api.MaxGangSize)
	case r.TimeLimit < api.NoLimit:
		return fmt.Errorf("time_limit %d ns", r.TimeLimit.Nanoseconds())
	case r.Epoch < 0 || r.NextStep < 0:
		return fmt.Errorf("epoch %d, next_step %d", r.Epoch, r.NextStep)
	}
	for i := range r.Members {
		for _, rank := range r.Members[i].Ranks {
			if rank < 0 || rank >= r.Size {
				return fmt.Errorf("rank %d in a gang of %d", rank, r.Size)
			}
		}
	}
	return nil
}

// JobSize is the ranks of a job whose row passed.
func JobSize(data []byte) (size, epoch int, over bool) {
	var r struct {
		Size    int              `json:"size"`
		Epoch   int              `json:"epoch"`
		Verdict *json.RawMessage `json:"verdict"`
	}
	_ = json.Unmarshal(data, &r) // it passed
	return r.Size, r.Epoch, r.Verdict != nil
}

// CheckRank is described at [CheckJob].
func CheckRank(data []byte) error { return only(check[gang.Rank](data)) }

// CheckEpoch is described at [CheckJob].
func CheckEpoch(data []byte) error { return checkInto(data, &epoch{EpochRow: new(gang.EpochRow)}) }

// CheckNode is described at [CheckJob].
func CheckNode(data []byte) error { return checkInto(data, &node{Node: new(gang.Node)}) }

// CheckEvent is described at [CheckJob].
func CheckEvent(data []byte) error { return only(check[api.Event](data)) }

// CheckSpec is described at [CheckJob].
func CheckSpec(data []byte) error { return only(check[api.Spec](data)) }

// CheckStep is described at [CheckJob].
func CheckStep(data []byte) error { return only(check[api.Step](data)) }

// CheckMeasure is described at [CheckJob].
func CheckMeasure(data []byte) error { return only(check[measure](data)) }

// CheckReservation is described at [CheckJob].
func CheckReservation(data []byte) error { return only(check[api.Reservation](data)) }

// CheckLetter is described at [CheckJob].
func CheckLetter(data []byte) error { return only(check[api.Letter](data)) }

// CheckPartition is described at [CheckJob].
func CheckPartition(data []byte) error { return only(check[api.PartitionChange](data)) }

// CheckCrontab is described at [CheckJob].
func CheckCrontab(data []byte) error { return only(check[api.Crontab](data)) }

func only[T any](_ *T, err error) error { return err }

func check[T any](data []byte) (*T, error) {
	r := new(T)
	return r, checkInto(data, r)
}

// checkInto reads a row into what r points to.
func checkInto(data []byte, r any) error {
	if err := json.Unmarshal(data, r); err != nil {
		return err
	}
	return possible(reflect.ValueOf(r).Elem(), "")
}

// possible walks over all numbers and times of a value; name is where it is.
func possible(v reflect.Value, name string) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return possible(v.Elem(), name)
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			if !t.IsZero() && (t.Before(oldest) || t.After(newest)) {
				return fmt.Errorf("%s: %v", name, t)
			}
			return nil
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				at := name
				if !f.Anonymous { // a part of the whole has no name
					at += "." + f.Name
				}
				if err := possible(v.Field(i), at); err != nil {
					return err
				}
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 || v.Type().Elem().Kind() == reflect.String {
			return nil
		}
		for i := range v.Len() {
			if err := possible(v.Index(i), fmt.Sprintf("%s[%d]", name, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := possible(it.Value(), fmt.Sprintf("%s[%v]", name, it.Key())); err != nil {
				return err
			}
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := int64(mostNumber)
		if v.Type() == reflect.TypeFor[time.Duration]() {
			most = int64(mostDuration)
		}
		if n := v.Int(); n > most || n < -most {
			return fmt.Errorf("%s: %v", name, v.Interface())
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n := v.Uint(); n > 1<<62 {
			return fmt.Errorf("%s: %d", name, n)
		}
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.Abs(f) > mostNumber {
			return fmt.Errorf("%s: %v", name, f)
		}
	}
	return nil
}
