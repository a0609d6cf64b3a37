package controller

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// A history is a row of random requests, each decided on the image that those before have made.
type history struct {
	random *rand.Rand
	img    *metadata.Image
	given  given
	told   bytes.Buffer // the records as they are written, and the answers
}

// tell decides n random requests and returns what was decided.
func tell(t *testing.T, number uint64, n int) string {
	h := &history{random: rand.New(rand.NewPCG(number, 1)), img: metadata.NewImage("c"), given: given{Rules: testRules()}}
	for range n {
		h.given.now = time.UnixMilli(h.random.Int64N(1 << 41))
		h.given.nextOffset = h.img.Offset + 1 + h.random.Int64N(2) // something else may lie between
		h.given.random = &seed{}
		for i := range h.given.random.bytes {
			h.given.random.bytes[i] = byte(h.random.Uint32())
		}
		request := h.request()
		first, records := h.decide(request)
		if again, _ := h.decide(request); again != first {
			t.Errorf("seed %d: the same request on the same image: first\n%q\nthen\n%q", number, first, again)
		}
		h.told.WriteString(first)
		if len(records) == 0 {
			continue
		}
		next, _, err := h.img.Apply(records, h.given.nextOffset+int64(len(records))-1, 1)
		if err != nil {
			t.Errorf("seed %d: records that do not fit: %v", number, err)
			break
		}
		h.img = next
	}
	return h.told.String()
}

// decide returns the records and the answer as text, and the records.
func (h *history) decide(request decision[any]) (string, []metadata.Record) {
	records, answer, err := request(h.img, h.given)
	var out bytes.Buffer
	for _, r := range records {
		out.Write(metadata.Append(nil, r, metadata.LevelCurrent))
	}
	fmt.Fprintf(&out, "%+v %v\n", answer, err)
	return out.String(), records
}

func (h *history) request() decision[any] {
	switch n := h.random.IntN(16); {
	case n < 3:
		return h.register()
	case n < 7:
		return h.create()
	case n < 9:
		return h.delete()
	case n < 11:
		return h.grow()
	case n < 13:
		return h.alter()
	case n == 13:
		return h.assign()
	case n == 14:
		return h.lose()
	}
	broker, epoch := h.broker()
	return answered(func(img *metadata.Image, _ given) ([]metadata.Record, int64, error) {
		return allocateProducerIDs(img, broker, epoch)
	})
}

// answered forgets the type of the answer.
func answered[A any](d decision[A]) decision[any] {
	return func(img *metadata.Image, g given) ([]metadata.Record, any, error) { return d(img, g) }
}

// changed is a decision without an answer.
func changed(d func(*metadata.Image) ([]metadata.Record, error)) decision[any] {
	return func(img *metadata.Image, _ given) ([]metadata.Record, any, error) {
		records, err := d(img)
		return records, nil, err
	}
}

func (h *history) broker() (id int32, epoch int64) {
	id = h.random.Int32N(4)
	if b := h.img.Broker(id); b != nil && h.random.IntN(8) > 0 {
		return id, b.Epoch
	}
	return id, -1
}

func (h *history) topic() string { return fmt.Sprint("topic-", h.random.IntN(9)) }

func (h *history) id() (id uuid.UUID) {
	if t := h.img.Topic(h.topic()); t != nil {
		return t.ID
	}
	return uuid.UUID{0: 7}
}

func (h *history) dirs(broker int32) (dirs []uuid.UUID) {
	for n := range 3 {
		if h.random.IntN(3) > 0 {
			dirs = append(dirs, dirID(10*int(broker)+n))
		}
	}
	h.random.Shuffle(len(dirs), func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
	return dirs
}

func (h *history) register() decision[any] {
	id, epoch := h.broker()
	r := Registration{ID: id, IncarnationID: uuid.UUID{0: 5, 1: byte(h.random.Uint32())}, PreviousEpoch: epoch, LogDirs: h.dirs(id)}
	for _, name := range []string{"PLAINTEXT", "INTERNAL", "CONTROLLER"}[h.random.IntN(3):] {
		r.Endpoints = append(r.Endpoints, metadata.BrokerEndpoint{Name: name, Host: "h", Port: 9092})
	}
	rack := fmt.Sprint("rack-", h.random.IntN(2))
	r.Rack = &rack
	return answered(func(img *metadata.Image, g given) ([]metadata.Record, int64, error) {
		return registerBroker(img, r, g.nextOffset)
	})
}

func (h *history) value() string {
	return fmt.Sprint(h.random.IntN(3), strings.Repeat("x", h.random.IntN(2)))
}

func (h *history) create() decision[any] {
	topics := make([]NewTopic, 1+h.random.IntN(3))
	for i := range topics {
		topics[i] = NewTopic{Name: h.topic(), Partitions: h.random.Int32N(5) - 1, ReplicationFactor: int16(h.random.Int32N(4) - 1), Configs: map[string]*string{}}
		for n := range h.random.IntN(4) {
			value := h.value()
			topics[i].Configs[fmt.Sprint("key-", n)] = &value
		}
		if h.random.IntN(4) == 0 {
			topics[i].Partitions, topics[i].ReplicationFactor = -1, -1
			topics[i].Assignments = []Assignment{{1, []int32{h.random.Int32N(4)}}, {0, []int32{h.random.Int32N(4)}}}
		}
	}
	return answered(func(img *metadata.Image, g given) ([]metadata.Record, []CreatedTopic, error) {
		return createTopics(img, topics, g)
	})
}

func (h *history) delete() decision[any] {
	refs := []TopicRef{{Name: h.topic()}, {ID: h.id()}}[:1+h.random.IntN(2)]
	return answered(func(img *metadata.Image, _ given) ([]metadata.Record, []DeletedTopic, error) {
		return deleteTopics(img, refs)
	})
}

func (h *history) grow() decision[any] {
	list := []PartitionsIncrease{{Topic: h.topic(), Count: h.random.Int32N(7)}, {Topic: h.topic(), Count: h.random.Int32N(7)}}
	return answered(func(img *metadata.Image, g given) ([]metadata.Record, []error, error) {
		return createPartitions(img, list, g)
	})
}

func (h *history) alter() decision[any] {
	a := AlterConfig{Resource: metadata.ConfigResource{Type: metadata.ResourceTopic, Name: h.topic()}, Replace: h.random.IntN(2) == 0}
	for n := range h.random.IntN(5) {
		value := h.value()
		a.Changes = append(a.Changes, ConfigChange{fmt.Sprint("key-", n), ConfigOp(h.random.IntN(2)), &value})
	}
	return answered(func(img *metadata.Image, g given) ([]metadata.Record, []error, error) {
		return alterConfigs(img, []AlterConfig{a}, g)
	})
}

func (h *history) assign() decision[any] {
	broker, _ := h.broker()
	a := DirectoryAssignment{TopicID: h.id(), Partition: h.random.Int32N(3), Directory: dirID(10*int(broker) + h.random.IntN(3))}
	return changed(func(img *metadata.Image) ([]metadata.Record, error) {
		return assignDirectories(img, broker, []DirectoryAssignment{a}), nil
	})
}

// lose takes directories from a broker, or cordons them.
func (h *history) lose() decision[any] {
	broker, epoch := h.broker()
	dirs, lost := h.dirs(broker), h.random.IntN(2) == 0
	return changed(func(img *metadata.Image) ([]metadata.Record, error) {
		if lost {
			return directoriesOffline(img, broker, epoch, dirs)
		}
		return cordonDirectories(img, broker, epoch, dirs)
	})
}

// TestPure: the same requests at the same times with the same randomness give the same records,
// byte for byte, and the same answers, whatever else has happened to the process.
func TestPure(t *testing.T) {
	const histories, steps = 10000, 12
	var wg sync.WaitGroup
	for part := range uint64(runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for seed := part; seed < histories && !t.Failed(); seed += uint64(runtime.GOMAXPROCS(0)) {
				if first, again := tell(t, seed, steps), tell(t, seed, steps); first != again {
					t.Errorf("seed %d: first\n%q\nthen\n%q", seed, first, again)
				}
			}
		})
	}
	wg.Wait()
}

// The randomness that a decision is given is all that it has.
func TestRandomness(t *testing.T) {
	img := metadata.NewImage("c")
	for id := range int32(3) {
		records, _, err := registerBroker(img, registration(id), img.Offset+1)
		if err != nil {
			t.Fatal(err)
		}
		if img, _, err = img.Apply(records, img.Offset+int64(len(records)), 1); err != nil {
			t.Fatal(err)
		}
	}
	create := func(first byte) CreatedTopic {
		g := given{Rules: testRules(), random: &seed{bytes: [32]byte{first}}}
		_, created, err := createTopics(img, []NewTopic{{Name: "t", Partitions: 3, ReplicationFactor: 1}}, g)
		if err != nil || created[0].Err != nil {
			t.Fatal(err, created[0].Err)
		}
		return created[0]
	}
	ids := []uuid.UUID{create(1).ID, create(2).ID, create(1).ID}
	if ids[0] != ids[2] || slices.Contains(ids[1:2], ids[0]) {
		t.Errorf("ids of seeds 1, 2 and 1 are %v", ids)
	}
}
