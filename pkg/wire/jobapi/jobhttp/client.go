package jobhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/wire/jobapi"
)

// Client speaks to GANG_SOCKET. An error of code unavailable means: try again.
type Client struct{ http *http.Client }

// NewClient makes a client of the socket that this process was given. Outside of a job
// there is none.
func NewClient() (*Client, error) {
	path := os.Getenv("GANG_SOCKET")
	if path == "" {
		return nil, &api.Error{Code: api.CodeInvalid, Message: "GANG_SOCKET is not set: this runs inside a job only",
			Hint: "start it from the script that gsubmit is given, or with srun"}
	}
	var d net.Dialer
	return &Client{http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", path) }}}}, nil
}

// Put stores the rank's checkpoint. Repeats of one put have the same key.
func (c *Client) Put(ctx context.Context, key string, data []byte) (*api.CallResult, error) {
	res := new(api.CallResult)
	return res, c.do(ctx, http.MethodPut, "/v1/checkpoint", key, bytes.NewReader(data),
		func(r io.Reader) error { return json.NewDecoder(r).Decode(res) })
}

// Get reads the newest complete checkpoint of a rank; -1: the own.
func (c *Client) Get(ctx context.Context, rank int) ([]byte, error) {
	path := "/v1/checkpoint"
	if rank >= 0 {
		path += "?rank=" + strconv.Itoa(rank)
	}
	var data []byte
	err := c.do(ctx, http.MethodGet, path, "", nil, func(r io.Reader) (err error) {
		data, err = io.ReadAll(r)
		return err
	})
	return data, err
}

// Barrier waits until every rank has come to name.
func (c *Client) Barrier(ctx context.Context, key, name string) (*api.CallResult, error) {
	res := new(api.CallResult)
	return res, c.do(ctx, http.MethodPost, "/v1/barrier?name="+url.QueryEscape(name), key, nil,
		func(r io.Reader) error { return json.NewDecoder(r).Decode(res) })
}

// Ready waits until every rank of a role has said READY=1; of the gang when role is empty.
func (c *Client) Ready(ctx context.Context, role string) (*api.CallResult, error) {
	path, res := "/v1/ready", new(api.CallResult)
	if role != "" {
		path += "?role=" + url.QueryEscape(role)
	}
	return res, c.do(ctx, http.MethodGet, path, "", nil, func(r io.Reader) error { return json.NewDecoder(r).Decode(res) })
}

// Job says who this process is.
func (c *Client) Job(ctx context.Context) (*Info, error) {
	res := new(Info)
	return res, c.do(ctx, http.MethodGet, "/v1/job", "", nil, func(r io.Reader) error { return json.NewDecoder(r).Decode(res) })
}

func (c *Client) do(ctx context.Context, method, path, key string, body io.Reader, take func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://gangd"+path, body)
	if err != nil {
		return err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return broken(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		e := new(api.Error)
		if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(e); err != nil || e.Message == "" {
			return api.Errorf(api.CodeInternal, "the node answered %s", resp.Status)
		}
		return e
	}
	if err := take(resp.Body); err != nil {
		return broken(ctx, err)
	}
	return nil
}

// broken is a connection that came to nothing: the node daemon ends, or begins.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, fs.ErrPermission) {
		e := jobapi.ForeignUser
		return &e
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return api.Errorf(api.CodeUnavailable, "%s", fmt.Sprintf("the node's answer did not come: %v", err))
}
