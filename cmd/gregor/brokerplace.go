package main

import (
	"github.com/gregor-kafka/gregor/internal/web"
	"github.com/spf13/cobra"
)

// brokerPlace says where a running broker is asked: by the socket in its data directory, or, where
// nothing is changed, by its gregor.http.listener.
type brokerPlace struct{ data, http string }

func (p *brokerPlace) dataFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.data, "data", "d", "gregor-data", "data directory of the running broker, the first of its log.dirs")
}

func (p *brokerPlace) httpFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.http, "http", "", "ask gregor.http.listener at host:port instead")
}

func (p *brokerPlace) client() *web.Client {
	if p.http != "" {
		return web.NewHTTPClient(p.http)
	}
	return web.NewSocketClient(p.data)
}
