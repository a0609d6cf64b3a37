package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"
)

// A Founding is how nodes that are new and name each other as voters come to be one cluster, with no step
// before the first start.
type Founding struct {
	NodeID int32
	Voters []Voter
	Dial   func(ctx context.Context, address string) (net.Conn, error)
	NewID  func() string // of a cluster

	RequestTimeout time.Duration
	Logger         *slog.Logger
}

// foundingPause is waited for between two rounds of questions.
const foundingPause = 100 * time.Millisecond

// Agree returns the id of the cluster that this node is to be of. One that another voter has it takes. If none
// has one, the voter with the lowest id makes one, when more than half of the voters are there and new: if
// those of an older cluster are only away, fewer are.
func (f *Founding) Agree(ctx context.Context) (string, error) {
	said := false
	for {
		id, fresh, err := f.ask(ctx)
		switch {
		case err != nil || id != "":
			return id, err
		case fresh > len(f.Voters)/2 && f.founds():
			return f.NewID(), nil
		}
		if !said {
			said = true
			f.Logger.Info("this node is new, and waits for the other voters to know in which cluster it is", "voters", f.addresses())
		}
		select {
		case <-time.After(foundingPause):
		case <-ctx.Done():
			return "", fmt.Errorf("no cluster id: this node is new, and of the voters %v more than half must be there and new, or one know the cluster: %w", f.addresses(), ctx.Err())
		}
	}
}

// founds reports whether this node makes the id.
func (f *Founding) founds() bool {
	return !slices.ContainsFunc(f.Voters, func(v Voter) bool { return v.ID < f.NodeID })
}

func (f *Founding) addresses() (list []string) {
	for _, v := range f.Voters {
		list = append(list, fmt.Sprintf("%d@%s", v.ID, v.Address))
	}
	return list
}

// ask asks all others once. It returns the id that those have who have one, and how many have none, this node
// included.
func (f *Founding) ask(ctx context.Context) (id string, fresh int, err error) {
	type answer struct {
		voter Voter
		id    string
		err   error
	}
	answers := make(chan answer)
	for _, v := range f.Voters {
		go func() {
			id, err := f.askOne(ctx, v)
			answers <- answer{v, id, err}
		}()
	}
	var knows Voter
	for range f.Voters {
		a := <-answers
		switch {
		case a.err != nil: // it is not there
		case a.id == "":
			fresh++
		case id != "" && a.id != id:
			err = fmt.Errorf("voter %d is of cluster %s, voter %d of cluster %s", knows.ID, id, a.voter.ID, a.id)
		default:
			knows, id = a.voter, a.id
		}
	}
	return id, fresh, err
}

func (f *Founding) askOne(ctx context.Context, v Voter) (id string, err error) {
	if v.ID == f.NodeID {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.RequestTimeout)
	defer cancel()
	nc, err := f.Dial(ctx, v.Address)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })()
	return roundTrip(nc, ClusterKey, nil)
}
