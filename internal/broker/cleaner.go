package broker

import (
	"context"

	"github.com/gregor-kafka/gregor/internal/cleaner"
	"github.com/gregor-kafka/gregor/internal/config"
)

// makeCleaner makes the part that compacts logs. The log manager tells it what it does to them,
// so that it is there first; it cleans when the logs are there.
func (b *Broker) makeCleaner(c *config.Broker) {
	b.cleaner = cleaner.NewManager(cleaner.ManagerOptions{
		FS: b.fs, Config: cleaner.BrokerConfig(c), Random: b.world.Random("keys of the cleaner"), Logger: b.logger,
	})
}

func (b *Broker) startCleaner() {
	b.cleaner.Reconfigure(cleaner.BrokerConfig(b.settings.now()))
	b.cleaner.Start(b.logs)
	b.onStop("cleaner", func(context.Context) error {
		b.cleaner.Close()
		return nil
	})
	b.web.HandleCompaction(b.cleaner)
	b.web.HandleTransactions(b.logs.Place)
}
