package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// maxLiveLine bounds a line of the stream: the nodes of a large cluster as JSON.
const maxLiveLine = 64 << 20

// Live is told what the queue and the nodes are, and how they change. Its methods are called one after the other.
type Live interface {
	Jobs(jobs []api.Job, all bool) // all: these and no others
	Gone(ids []int64)
	Nodes(nodes []api.Node, all bool)
	Use(of map[string]api.NodeUse)
	Order(o api.QueueOrder)
	Lost() // the controller has gone away: it is waited for
}

// Live follows the queue and the nodes until ctx ends. When the controller comes back all is told again.
func (c *Client) Live(ctx context.Context, to Live) error {
	return insist(ctx, false, to.Lost, func() (began bool, err error) {
		res, err := c.send(ctx, lasting, "GET", "/v1/live?nodes=1", nil)
		if err != nil {
			return false, err
		}
		defer res.Close()
		sc := bufio.NewScanner(res)
		sc.Buffer(nil, maxLiveLine)
		var event string
		var data strings.Builder
		for sc.Scan() {
			switch name, rest, _ := strings.Cut(sc.Text(), ": "); name {
			case "event":
				event = rest
			case "data":
				data.WriteString(rest)
				data.WriteByte('\n')
			case "":
				if err := tell(to, event, data.String()); err != nil {
					return true, err
				}
				event = ""
				data.Reset()
			}
		}
		if ctx.Err() != nil {
			return true, context.Cause(ctx)
		}
		return true, &UnreachableError{Socket: c.socket, Err: cmp.Or(sc.Err(), io.ErrUnexpectedEOF)}
	})
}

func tell(to Live, event, data string) error {
	switch event {
	case "all", "rows":
		jobs, err := api.ReadLines(strings.NewReader(data))
		if err != nil {
			return fmt.Errorf("the controller's table of jobs: %w", err)
		}
		to.Jobs(jobs, event == "all")
	case "gone":
		var ids []int64
		for text := range strings.SplitSeq(strings.TrimSpace(data), ",") {
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("the controller's list of jobs: %w", err)
			}
			ids = append(ids, id)
		}
		to.Gone(ids)
	case "nodes", "node":
		var nodes []api.Node
		if err := json.Unmarshal([]byte(data), &nodes); err != nil {
			return fmt.Errorf("the controller's nodes: %w", err)
		}
		to.Nodes(nodes, event == "nodes")
	case "use":
		var of map[string]api.NodeUse
		if err := json.Unmarshal([]byte(data), &of); err != nil {
			return fmt.Errorf("the controller's figures of nodes: %w", err)
		}
		to.Use(of)
	case "order":
		var o api.QueueOrder
		if err := json.Unmarshal([]byte(data), &o); err != nil {
			return fmt.Errorf("the controller's order of the queue: %w", err)
		}
		to.Order(o)
	}
	return nil
}
