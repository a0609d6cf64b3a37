package leader

// Versions of requests between brokers by metadata.version: a release knows what its levels ask for, and brokers of
// different releases have the same level. (Kafka class MetadataVersion.)

// FetchVersion returns the version of Fetch that a follower sends at most.
func FetchVersion(level int16) int16 {
	switch {
	case level >= 27: // 4.1-IV1
		return 18
	case level >= 21: // 3.9-IV0
		return 17
	case level >= 19: // 3.7-IV4
		return 16
	case level >= 10: // 3.5-IV1
		return 15
	case level >= 9: // 3.5-IV0
		return 14
	}
	return 13
}

// ListOffsetsVersion returns the version of ListOffsets that a follower sends at most.
func ListOffsetsVersion(level int16) int16 {
	switch {
	case level >= 29: // 4.2-IV1
		return 11
	case level >= 25: // 4.0-IV3
		return 10
	case level >= 21: // 3.9-IV0
		return 9
	case level >= 9: // 3.5-IV0
		return 8
	}
	return 7
}
