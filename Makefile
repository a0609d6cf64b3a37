# The few commands of daily work. CI calls .ci/run, which calls the same things.
STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build test race lint bench generate conformance fuzz crash faults models

build: ## one static binary
	CGO_ENABLED=0 go build -trimpath -ldflags=-s -o gregor ./cmd/gregor

test: ## the README's test command
	go test ./...

race:
	go test -race ./...

lint:
	test -z "$$(gofmt -l .)"
	go vet ./...
	$(STATICCHECK) ./...

bench: ## hot paths; compare two runs with benchstat
	go test -run='^$$' -bench=. -benchmem -count=6 ./internal/record ./internal/segment ./internal/commitlog ./internal/api

generate:
	go generate ./...

conformance: ## other people's clients and tools against gregor
	conformance/run smoke old compaction

fuzz: ## a minute for every decoder (FUZZTIME=10m for longer)
	.ci/fuzz $(or $(FUZZTIME),60s)

crash: ## 10,000 random crash points
	GREGOR_CRASH_POINTS=10000 go test -run=Crash -count=1 ./internal/segment ./internal/commitlog ./internal/logdir

models: ## random histories of a log that is compacted, against a model (CHECKS=15000); rare faults take thousands
	go test ./internal/compaction -run='^TestModel$$' -count=1 -timeout=24h -rapid.checks=$(or $(CHECKS),15000)

faults: ## faults in log directories (COUNT=10000 SEED=1 ATONCE=2 SUBJECT=kraft FILES=.log,.index; FAULT='...' makes one again)
	go test ./internal/faultdir -run='^TestFaults$$' -count=1 -v -timeout=24h -faults.count=$(or $(COUNT),1000) -faults.seed=$(or $(SEED),1) \
		-faults.atonce=$(or $(ATONCE),1) -faults.subject='$(SUBJECT)' -faults.files='$(FILES)' -faults.one='$(FAULT)'
