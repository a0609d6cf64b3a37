package api

import (
	"context"
	"errors"
	"os"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
)

// elsewhere is a Controller on a node that is none.
type elsewhere struct{ asked int }

func (e *elsewhere) refuse() error {
	e.asked++
	return &controller.Error{Kind: controller.NotController, Message: "this node does not lead the metadata log"}
}

func (e *elsewhere) CreateTopics(context.Context, []controller.NewTopic, bool) ([]controller.CreatedTopic, error) {
	return nil, e.refuse()
}

func (e *elsewhere) DeleteTopics(context.Context, []controller.TopicRef) ([]controller.DeletedTopic, error) {
	return nil, e.refuse()
}

func (e *elsewhere) CreatePartitions(context.Context, []controller.PartitionsIncrease, bool) ([]error, error) {
	return nil, e.refuse()
}

func (e *elsewhere) AlterConfigs(context.Context, []controller.AlterConfig, bool) ([]error, error) {
	return nil, e.refuse()
}

func (e *elsewhere) AllocateProducerIDs(context.Context, int32, int64) (int64, int, error) {
	return 0, 0, e.refuse()
}

// Every request for the controller says so when this node is none: clients ask the other one then.
func TestNotController(t *testing.T) {
	s := imageServer(t, "", configuredCluster()...)
	control := &elsewhere{}
	s.Controller = control
	asked := 0
	f := func(name string, got int16) {
		t.Helper()
		if asked++; got != kerr.NotController.Code || control.asked != asked {
			t.Errorf("%s: error %d, want %d; the controller was asked %d times", name, got, kerr.NotController.Code, control.asked)
		}
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Topics = []kmsg.CreateTopicsRequestTopic{newTestTopic("new", 1)}
	f("CreateTopics", ask[kmsg.CreateTopicsResponse](t, s, 7, create).Topics[0].ErrorCode)
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr("orders")}}
	f("DeleteTopics", ask[kmsg.DeleteTopicsResponse](t, s, 6, remove).Topics[0].ErrorCode)
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "orders", Count: 5}}
	f("CreatePartitions", ask[kmsg.CreatePartitionsResponse](t, s, 3, grow).Topics[0].ErrorCode)
	alter := kmsg.NewPtrAlterConfigsRequest()
	alter.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceType(metadata.ResourceTopic), ResourceName: "orders"}}
	f("AlterConfigs", ask[kmsg.AlterConfigsResponse](t, s, 2, alter).Resources[0].ErrorCode)
	change := kmsg.NewPtrIncrementalAlterConfigsRequest()
	change.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceType(metadata.ResourceTopic), ResourceName: "orders"}}
	f("IncrementalAlterConfigs", ask[kmsg.IncrementalAlterConfigsResponse](t, s, 1, change).Resources[0].ErrorCode)
	// Not for the controller itself: who wants a producer id tries again here.
	if got := ask[kmsg.InitProducerIDResponse](t, s, 4, initProducerID()).ErrorCode; got != kerr.CoordinatorLoadInProgress.Code {
		t.Errorf("InitProducerId: error %d, want %d", got, kerr.CoordinatorLoadInProgress.Code)
	}
}

func initProducerID() *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	return req
}

// The kinds of the controller's refusals are names of Kafka's codes.
func TestKindsHaveCodes(t *testing.T) {
	source, err := os.ReadFile("../controller/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`Kind = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(kinds) < 10 {
		t.Fatalf("found %d kinds", len(kinds))
	}
	for _, kind := range kinds {
		got := code(&controller.Error{Kind: controller.Kind(kind[1])})
		if k := kerr.TypedErrorForCode(got); got <= 0 || k.Message != kind[1] {
			t.Errorf("%s has code %d", kind[1], got)
		}
	}
}

// A giver hands out blocks of producer ids when it is let, or fails.
type giver struct {
	elsewhere
	next    int64
	answers chan error
}

func (g *giver) AllocateProducerIDs(ctx context.Context, _ int32, _ int64) (int64, int, error) {
	select {
	case err := <-g.answers:
		g.next += 10
		return g.next - 10, 10, err
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

// One asks for a block of producer ids, the others wait for it, no longer than they want, and no id is
// given twice. When the one fails another asks.
func TestProducerIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := imageServer(t, "", configuredCluster()...)
		g := &giver{answers: make(chan error)}
		s.Controller = g
		impatient, cancel := context.WithCancel(t.Context())
		go func() {
			if _, err := s.nextProducerID(impatient); !errors.Is(err, context.Canceled) {
				t.Errorf("the impatient: %v", err)
			}
		}()
		synctest.Wait()
		var mu sync.Mutex
		given := map[int64]bool{}
		failed := 0
		for range 25 {
			go func() {
				id, err := s.nextProducerID(t.Context())
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					failed++
				case given[id]:
					t.Errorf("id %d was given twice", id)
				default:
					given[id] = true
				}
			}()
		}
		synctest.Wait()
		cancel()
		for _, err := range []error{errors.New("no leader"), nil, nil, nil} {
			g.answers <- err
			synctest.Wait()
		}
		if len(given) != 24 || failed != 1 {
			t.Errorf("%d ids, %d failed; want 24 and the one that asked", len(given), failed)
		}
	})
}
