package metadata

// Levels of the feature metadata.version at which the format of a record changes, under
// Kafka's names (class org.apache.kafka.server.common.MetadataVersion).
const (
	Level3_3IV3 = 7  // in controlled shutdown
	Level3_4IV0 = 8  // migration from ZooKeeper
	Level3_7IV2 = 17 // log directories of replicas
	Level4_0IV1 = 23 // eligible leader replicas
	Level4_3IV0 = 30 // cordoned log directories
	Level4_4    = 33 // the level of Apache Kafka 4.4.0

	LevelMin     = Level3_3IV3 // the lowest that a broker of today accepts
	LevelCurrent = Level4_4    // what a new cluster gets
)

// MetadataVersion is the name of the feature that fixes the format of the records.
const MetadataVersion = "metadata.version"

// TellsCordoned reports whether a cluster at a level can note which log directories are cordoned.
func TellsCordoned(level int16) bool { return level == 0 || level >= Level4_3IV0 }

// recordVersion is the version in which a cluster at a level writes r. A level of 0 (not known,
// as before the first FeatureLevelRecord) counts as the current one.
func recordVersion(r Record, level int16) int16 {
	if level == 0 {
		level = LevelCurrent
	}
	switch r := r.(type) {
	case *RegisterBrokerRecord:
		return stepped(level, Level3_3IV3, Level3_4IV0, Level3_7IV2, Level4_3IV0)
	case *PartitionRecord:
		return stepped(level, Level3_7IV2, Level4_0IV1)
	case *PartitionChangeRecord:
		return stepped(level, Level3_7IV2, Level4_0IV1)
	case *BrokerRegistrationChangeRecord:
		return registrationChangeVersion(r)
	}
	return r.MaxVersion()
}

// stepped counts the steps that level has reached: version n needs steps[n-1].
func stepped(level int16, steps ...int16) (version int16) {
	for _, step := range steps {
		if level >= step {
			version++
		}
	}
	return version
}

// registrationChangeVersion is the lowest version that holds what changed.
func registrationChangeVersion(r *BrokerRegistrationChangeRecord) int16 {
	switch {
	case r.CordonedLogDirs != nil:
		return 3
	case len(r.LogDirs) > 0:
		return 2
	case r.InControlledShutdown != 0:
		return 1
	}
	return 0
}
