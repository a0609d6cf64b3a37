package record

// Where the fields of a message, format v0 or v1, begin.
const (
	posMessageCRC        = 12
	posMessageAttributes = 17
	posMessageTimestamp  = 18 // v1 only
)
