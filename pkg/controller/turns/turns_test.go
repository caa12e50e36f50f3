package turns

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"gangd/pkg/api"
)

var tooMany = &api.Error{Code: api.CodeTooMany}

// asked starts a list of a user, and says in served when its turn has come.
func asked(t *testing.T, turns *Turns, served *[]string, name string, uid uint32) (end func()) {
	t.Helper()
	give := make(chan struct{})
	go func() {
		done, err := turns.Take(t.Context(), uid, tooMany)
		if err != nil {
			return
		}
		*served = append(*served, name)
		<-give
		done()
	}()
	synctest.Wait()
	return func() { close(give); synctest.Wait() }
}

func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		var served []string
		var ends []func()
		for i := range 3 {
			ends = append(ends, asked(t, &turns, &served, fmt.Sprint("eve", i), 1))
		}
		if fmt.Sprint(served) != "[eve0]" {
			t.Fatalf("served %v: one user has one turn at a time", served)
		}
		bob := asked(t, &turns, &served, "bob", 2)
		if fmt.Sprint(served) != "[eve0 bob]" {
			t.Fatalf("served %v: bob waits behind eve", served)
		}
		for _, end := range ends {
			end()
		}
		bob()
		if fmt.Sprint(served) != "[eve0 bob eve1 eve2]" || len(turns.busy)+len(turns.queue)+len(turns.order) > 0 {
			t.Errorf("served %v, left %v %v %v", served, turns.busy, turns.queue, turns.order)
		}
	})
}

func TestListsAtOnceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		var served []string
		var ends []func()
		for uid := range uint32(AtOnce + 2) {
			ends = append(ends, asked(t, &turns, &served, fmt.Sprint(uid), uid))
		}
		if len(served) != AtOnce {
			t.Fatalf("served %v at once", served)
		}
		ends[1]()
		if len(served) != AtOnce+1 || served[AtOnce] != fmt.Sprint(AtOnce) {
			t.Errorf("served %v after one has ended", served)
		}
		for i, end := range ends {
			if i != 1 {
				end()
			}
		}
	})
}

func TestListsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		ctx, cancel := context.WithCancel(t.Context())
		done, err := turns.Take(ctx, 1, tooMany)
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for range Waiting + 3 {
			go func() {
				if _, err := turns.Take(ctx, 1, tooMany); api.CodeOf(err) == api.CodeTooMany {
					refused++
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if refused != 3 {
			t.Errorf("%d of %d refused", refused, Waiting+3)
		}
		cancel()
		synctest.Wait()
		done()
		if len(turns.busy)+len(turns.queue)+len(turns.order) > 0 {
			t.Errorf("left: %v %v %v", turns.busy, turns.queue, turns.order)
		}
	})
}
