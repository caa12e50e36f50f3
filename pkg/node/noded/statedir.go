package noded

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/checksum"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/dirlock"
	"gangd/pkg/wire/session"
)

const (
	membersDir      = shim.MembersDir
	idFile          = "id"          // made once; names this state directory to the controller, and its members' containments
	idCopyFile      = "id.copy"     // the same with a checksum: without it nothing is known of what runs here
	bootFile        = "boot"        // boot id of the daemon that wrote here last
	leaseFile       = "lease"       // the site's, as a controller told last
	cardsFile       = "cards"       // cards that are held, see cards_proof.go
	lineageFile     = "lineage"     // highest commit number that a controller told
	controllersFile = "controllers" // those of the site, and which of them have ended
)

// stateDir is the daemon's directory. One daemon has it at a time.
type stateDir struct {
	path string
	id   string
	boot string
	// lastBoot is the boot id of the daemon before; members of it are gone with that boot.
	lastBoot string
	run      string                      // of the controller in session, owned by the session's reader
	lineage  atomic.Pointer[lineageMark] // written by the session's reader, read for the next hello
	lease    time.Duration               // -1: never told, or lost
	// leaseLost: there was one, and what it was can't be read.
	leaseLost bool
	lost      []string // what could not be read, for the log
	kept      session.Kept
	lock      *os.File
	mark      *os.File   // of the lineage, open from the first that is kept; owned by the session's reader
	markSize  int        // of what it holds
	placing   sync.Mutex // of the members' directory
}

func openState(path string) (*stateDir, error) {
	// Others may pass through to the scripts of their jobs, and see nothing.
	if err := dirlock.Open(path, 0o711); err != nil {
		return nil, fmt.Errorf("state_dir: %w", err)
	}
	s := &stateDir{path: path, boot: proc.BootID()}
	if err := s.take(); err != nil {
		return nil, err
	}
	err := s.load()
	if err == nil {
		err = s.placeMembers()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// take locks the directory; shims don't inherit the lock.
func (s *stateDir) take() error {
	f, err := dirlock.Take(s.path)
	if held := new(dirlock.HeldError); errors.As(err, &held) {
		return fmt.Errorf("state_dir %w: stop that gnoded, or give this one another state_dir", held)
	}
	if err != nil {
		return fmt.Errorf("state_dir: %w", err)
	}
	s.lock = f
	return nil
}

func (s *stateDir) load() error {
	if err := s.loadID(); err != nil {
		return err
	}
	s.lastBoot = s.read(bootFile)
	number, rest, _ := strings.Cut(s.read(lineageFile), " ")
	run, proof, _ := strings.Cut(rest, " ")
	seen, _ := strconv.ParseUint(number, 10, 64) // absent or torn: nothing was seen
	s.lineage.Store(&lineageMark{seen, run, proof})
	s.loadLease()
	s.loadControllers()
	return s.write(bootFile, s.boot)
}

// loadID finds the id of this directory: as it is written, as its copy says where the two differ,
// or as the members' place in memory is called. A new one is made for a new directory.
func (s *stateDir) loadID() error {
	var kept keptID
	if _, err := s.readRecord(idCopyFile, &kept); err != nil {
		s.lost = append(s.lost, err.Error())
	}
	written := s.read(idFile)
	switch in := s.idOfMembers(); {
	case isID(kept.ID):
		s.id = kept.ID
	case in != "":
		s.id = in
	case isID(written):
		s.id = written
	default:
		b := make([]byte, idBytes)
		_, _ = rand.Read(b) // never fails
		s.id = hex.EncodeToString(b)
	}
	if written != "" && written != s.id {
		s.lost = append(s.lost, fmt.Sprintf("%s: it says %.40q, its copy or the members' directory %s", idFile, written, s.id))
	}
	return errors.Join(s.write(idFile, s.id), s.writeRecord(idCopyFile, keptID{s.id}))
}

// keptID is the content of the copy.
type keptID struct {
	ID string `json:"id"`
}

// idBytes are in an id.
const idBytes = 8

func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == idBytes
}

// idOfMembers is the id that the members' directory in memory is called by; empty: there is none.
func (s *stateDir) idOfMembers() string {
	to, err := os.Readlink(filepath.Join(s.path, membersDir))
	if err != nil {
		return ""
	}
	if id := filepath.Base(to); isID(id) {
		return id
	}
	return ""
}

// keptLease is the content of the lease's file.
type keptLease struct {
	Lease string `json:"lease"`
}

func (s *stateDir) loadLease() {
	s.lease = -1
	var kept keptLease
	there, err := s.readRecord(leaseFile, &kept)
	if !there {
		return
	}
	d, bad := time.ParseDuration(kept.Lease)
	if err == nil && bad == nil {
		s.lease = d
	} else {
		s.leaseLost = true
		s.lost = append(s.lost, leaseFile+": damaged: no lease is renewed before a controller says by what it reckons")
	}
}

// readRecord reads a file that has a checksum, if it is there.
func (s *stateDir) readRecord(name string, into any) (there bool, err error) {
	text := []byte(s.read(name))
	if len(text) == 0 {
		return false, nil
	}
	if err = checksum.Check(text, name); err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return true, err
}

func (s *stateDir) writeRecord(name string, record any) error {
	b, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return s.write(name, checksum.Add(b, name))
}

func (s *stateDir) close() {
	_ = s.mark.Close() // nil: never opened
	_ = s.lock.Close()
}

func (s *stateDir) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(s.path, name))
	return strings.TrimSpace(string(b))
}

func (s *stateDir) write(name, text string) error {
	return replaceFile(filepath.Join(s.path, name), []byte(text+"\n"))
}

// replaceFile has a reader find the old text or the new one.
func replaceFile(path string, b []byte) error {
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// lineageMark is the highest lineage that a controller told, and which process of it did.
type lineageMark struct {
	lineage uint64
	run     string // empty: the controller did not say
	proof   string // that it did; empty: it gave none
}

// sawLineage keeps the highest lineage with the run that told it: a controller whose store went
// back in time is told.
func (s *stateDir) sawLineage(n uint64, proof string) error {
	have := s.lineage.Load()
	if n < have.lineage || n == 0 || n == have.lineage && s.run == have.run {
		return nil
	}
	s.lineage.Store(&lineageMark{n, s.run, proof})
	return s.keepLineage(strings.TrimSpace(fmt.Sprintf("%d %s %s", n, s.run, proof)))
}

// keepLineage writes over what was there: with each commit that has work for this node there is a new one. It is
// one write within one sector, which neither a kill nor the end of the machine tears.
func (s *stateDir) keepLineage(text string) error {
	if s.mark == nil {
		f, err := os.OpenFile(filepath.Join(s.path, lineageFile), os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			_ = f.Close()
			return err
		}
		s.mark, s.markSize = f, int(info.Size())
	}
	b := []byte(text)
	for len(b) < s.markSize-1 { // the rest of a longer one of before
		b = append(b, ' ')
	}
	b = append(b, '\n')
	s.markSize = len(b)
	_, err := s.mark.WriteAt(b, 0)
	return err
}

// sawLease keeps the lease: a daemon that starts while no controller runs has to renew the
// leases of its members by the one that the controller reckons with, not by a default.
func (s *stateDir) sawLease(d time.Duration) error {
	if d == s.lease {
		return nil
	}
	s.lease = d
	return s.writeRecord(leaseFile, keptLease{d.String()})
}

// heldCards are the cards that the daemon before did not give on; lost: there was such a record, and
// what it said is not known. With the machine's next start every process that held them is gone.
func (s *stateDir) heldCards() (held map[string]leftCard, lost bool) {
	var kept keptCards
	there, err := s.readRecord(cardsFile, &kept)
	if !there && s.lastBoot == s.boot {
		err = fmt.Errorf("%s: it is missing", cardsFile)
	}
	if err != nil {
		s.lost = append(s.lost, fmt.Sprintf("%v: a card is given on when next to nothing is in use on it", err))
		return nil, true
	}
	if kept.Boot != s.boot {
		return nil, false
	}
	return kept.Cards, false
}

// keptCards is the content of the cards' file, and which run of the machine it speaks of.
type keptCards struct {
	Boot  string              `json:"boot"`
	Cards map[string]leftCard `json:"cards"`
}

// keepHeldCards writes them down for a daemon to come. When that fails it gives a card on only
// after a look of its own, by what it finds then.
func (s *stateDir) keepHeldCards(cards map[string]leftCard) {
	_ = s.writeRecord(cardsFile, keptCards{s.boot, cards})
}

// loadControllers reads what was kept of the site's controllers. Where that is damaged none of them is
// known to have ended, and there is a list without anybody's word: leases run until a leader says more.
func (s *stateDir) loadControllers() {
	if _, err := s.readRecord(controllersFile, &s.kept); err != nil {
		s.lost = append(s.lost, err.Error())
		s.kept = session.Kept{Controllers: api.Controllers{Version: 1, List: []api.Controller{{Name: "?"}}}}
	}
}

// keepControllers keeps it: a daemon that starts while no controller runs has to know whose word it
// needs, and whether to believe that nobody listens there.
func (s *stateDir) keepControllers(k session.Kept) error { return s.writeRecord(controllersFile, k) }

func (s *stateDir) memberDir(k api.MemberKey) string {
	return filepath.Join(s.path, membersDir, keyName(k))
}

// members lists the members that have a directory.
func (s *stateDir) members() ([]api.MemberKey, error) {
	entries, err := os.ReadDir(filepath.Join(s.path, membersDir))
	if err != nil {
		return nil, err
	}
	var keys []api.MemberKey
	for _, e := range entries {
		if k, ok := keyOf(e.Name()); ok {
			keys = append(keys, k)
		}
	}
	return keys, nil
}
