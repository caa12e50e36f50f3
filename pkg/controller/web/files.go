package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed static
var static embed.FS

// file is one of those that the page is made of.
type file struct {
	kind, tag     string
	plain, zipped []byte
}

// load reads and packs them, once.
func load() (map[string]*file, error) {
	out := map[string]*file{}
	return out, fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		return pack(out, strings.TrimPrefix(name, "static/"), b)
	})
}

// pack puts a file among those that are served.
func pack(out map[string]*file, name string, b []byte) error {
	var z bytes.Buffer
	w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression) // the level is one
	if _, err := w.Write(b); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	kind := mime.TypeByExtension(path.Ext(name))
	if strings.HasSuffix(name, ".js") {
		kind = "text/javascript; charset=utf-8" // a host's table may say otherwise, and then nosniff stops it
	}
	out[name] = &file{kind: kind, tag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: b, zipped: z.Bytes()}
	return nil
}

func (f *file) serve(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache") // asked again each time, and not sent again
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.tag && status == http.StatusOK {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	b := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		b = f.zipped
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b)
	}
}
